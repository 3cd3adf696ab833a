/** Plugins register once, in order, and any doubt stops the start. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { routerOf } from '../../http/routes.ts';
import {
  type Plugin,
  type PluginSet,
  type Registration,
  RegistrationError,
  Registry,
  type Route,
} from '../../kernel/registry.ts';
import { stageNames, stageOf } from '../../kernel/stages.ts';
import { contractsFor } from '../../plugins-sdk/results/contracts.ts';

const nothing = () => undefined;
const contracts = contractsFor({ signers: [], now: Date.now });

function newRegistry(): Registry {
  return new Registry({ contracts, complain: nothing });
}

function registration(name: string, plugin: Plugin = {}, more: Partial<Registration> = {}): Registration {
  return { name, budget: 1000, plugin, ...more };
}

/** Every stage but that of routes, with who is asked there. */
function stagesOf({ taps }: PluginSet) {
  const inner = stageNames.filter((stage) => stage !== 'route');
  return inner.map((stage) => ({ stage, failure: stageOf(stage).fails ?? 'closed', taps: taps[stage] }));
}

/** What registering them one after another ends with. */
function refusal(...registrations: Registration[]): string {
  const registry = newRegistry();
  try {
    for (const one of registrations) registry.register(one);
    routerOf(registry.seal().plugins, nothing, () => nothing);
  } catch (error) {
    assert.ok(error instanceof RegistrationError, String(error));
    return error.message;
  }
  return 'registered';
}

const route = (method: string, path: string): Route => ({
  method,
  path,
  admit: false,
  handle: () => ({ status: 200, body: '' }),
});

describe('registering', () => {
  it('takes plugins with nothing in them', () => {
    assert.equal(refusal(registration('p'), registration('q', { hooks: {} })), 'registered');
  });

  it('takes an undefined hook for none', () => {
    const registry = newRegistry();
    registry.register(registration('p', { hooks: { onError: undefined, authenticate: undefined } }));
    assert.deepEqual(
      stagesOf(registry.seal()).flatMap(({ taps }) => taps),
      [],
    );
  });

  it('refuses an unknown hook', () => {
    for (const name of ['onHttpRequests', 'toString', '__proto__', 'constructor', '', 'route', 'vary']) {
      const hooks = JSON.parse(`{${JSON.stringify(name)}: 1}`);
      assert.equal(refusal(registration('p', { hooks })), `plugin "p": there is no hook "${name}"`);
    }
  });

  it('refuses two servers of one route', () => {
    const servers = (...routes: Route[]) =>
      refusal(...routes.map((one, index) => registration('pqr'[index] ?? '', { routes: [one] })));
    assert.equal(
      servers(route('GET', '/health'), route('GET', '/a'), route('GET', '/health')),
      'plugins "p" and "r" both serve GET /health',
    );
    assert.equal(servers(route('OPTIONS', '*'), route('OPTIONS', '*')), 'plugins "p" and "q" both serve OPTIONS *');
    assert.equal(servers(route('GET', '/a'), route('HEAD', '/a'), route('GET', '/a/')), 'registered');
  });

  it('refuses two providers of one variant', () => {
    const both = (hooks: Plugin['hooks'], others = hooks) =>
      refusal(registration('p', { hooks }), registration('q', { hooks: others }));
    const free = { authenticate: { free: nothing } };
    assert.equal(both(free), 'plugins "p" and "q" both provide "authenticate" of "free"');
    assert.equal(both(free, { authenticate: { token: nothing } }), 'registered');
    assert.equal(both({ present: { sync: nothing } }), 'plugins "p" and "q" both provide "present" of "sync"');
    assert.equal(both({ present: { sync: nothing } }, { present: { stream: nothing } }), 'registered');
  });

  it('lets any number of plugins tap the other stages', () => {
    const shared = stageNames.filter((stage) => !/^(route|vary|price|authenticate|present)$/.test(stage));
    assert.equal(shared.length, 21);
    const hooks = Object.fromEntries(shared.map((stage) => [stage, nothing]));
    assert.equal(refusal(registration('p', { hooks }), registration('q', { hooks })), 'registered');
  });

  it('takes any text as the name of a variant', async () => {
    const registry = newRegistry();
    const variants = JSON.parse('{"__proto__": 1, "constructor": 1, "": 1}');
    const names = Object.keys(variants);
    const authenticate = Object.fromEntries(names.map((name) => [name, () => true]));
    registry.register(registration('p', { hooks: { authenticate } }));
    const set = registry.seal();
    assert.deepEqual(
      stagesOf(set).flatMap(({ taps }) => taps.map(({ variant }) => variant)),
      names,
    );
    assert.equal(set.hooks.isTapped('authenticate', 'toString'), false);
    assert.equal(set.hooks.isTapped('authenticate', '__proto__'), true);
  });
});

describe('a sealed registry', () => {
  it('takes no more plugins', () => {
    const registry = newRegistry();
    registry.register(registration('p'));
    const { plugins } = registry.seal();
    assert.throws(() => registry.register(registration('q')), {
      constructor: RegistrationError,
      message: 'plugin "q" comes too late: the registry is sealed',
    });
    assert.deepEqual(
      plugins.map(({ name }) => name),
      ['p'],
    );
  });

  it('knows the headers that carry credentials, once and in lower case', () => {
    const registry = newRegistry();
    registry.register(registration('p', {}, { credentials: ['X-Token', 'X-Proof'] }));
    registry.register(registration('q', {}, { credentials: ['x-token', 'X-B'] }));
    assert.deepEqual([...registry.seal().hidden], ['x-token', 'x-proof', 'x-b']);
  });

  it('runs nothing by itself', () => {
    const registry = newRegistry();
    const start = () => assert.fail('started');
    registry.register(registration('p', { start, stop: start, hooks: { onError: start } }));
    registry.seal();
  });
});

describe('registering, where there is room for doubt', () => {
  it('refuses doubles within one plugin', () => {
    const doubles = [registration('p', { routes: [route('GET', '/a'), route('GET', '/a')] })];
    assert.deepEqual(doubles.filter((one) => refusal(one) === 'registered').length, 0);
  });

  it('refuses a route that the kernel serves, or that differs by a name only', () => {
    const own = registration('p', { routes: [route('POST', '/endpoints/:endpointId')] });
    const one = registration('p', { routes: [route('GET', '/records/:id')] });
    const other = registration('q', { routes: [route('get', '/records/:requestId')] });
    assert.notEqual(refusal(own), 'registered');
    assert.notEqual(refusal(one, other), 'registered');
  });

  it('refuses a route for every POST: the endpoints are the kernel’s', () => {
    for (const method of ['POST', 'post']) {
      const everywhere = registration('p', { routes: [route(method, '*')] });
      assert.equal(refusal(everywhere), `plugins "kernel" and "p" both serve ${method} *`);
    }
    assert.equal(refusal(registration('p', { routes: [route('GET', '*')] })), 'registered');
  });
});
