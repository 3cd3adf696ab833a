/** Plugins register once, in order, and any doubt stops the start. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { routerOf } from '../../http/routes.ts';
import {
  type Plugin,
  type PluginSet,
  type Registration,
  RegistrationError,
  type Route,
  register,
} from '../../kernel/registry.ts';
import { stageNames, stages } from '../../kernel/stages.ts';
import { contractsFor } from '../../plugins-sdk/results/contracts.ts';
import { newExchange } from './guarded.ts';

const nothing = () => undefined;
const contracts = contractsFor({ signers: [], now: Date.now, endpoints: new Set() });

function registered(...registrations: Registration[]): PluginSet {
  return register(registrations, { contracts, complain: nothing });
}

function registration(name: string, plugin: Plugin = {}, more: Partial<Registration> = {}): Registration {
  return { name, budget: 1000, plugin, ...more };
}

/** Every stage but that of routes, with who is asked there. */
function stagesOf({ taps }: PluginSet) {
  const inner = stageNames.filter((stage) => stage !== 'route');
  return inner.map((stage) => ({ stage, failure: stages[stage].fails ?? 'closed', taps: taps[stage] }));
}

/** What registering them ends with. */
function refusal(...registrations: Registration[]): string {
  try {
    routerOf(registered(...registrations).plugins, nothing, () => nothing);
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
    const set = registered(registration('p', { hooks: { onError: undefined, authenticate: undefined } }));
    assert.deepEqual(
      stagesOf(set).flatMap(({ taps }) => taps),
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
    const variants = JSON.parse('{"__proto__": 1, "constructor": 1, "": 1}');
    const names = Object.keys(variants);
    const authenticate = Object.fromEntries(names.map((name) => [name, () => true]));
    const set = registered(registration('p', { hooks: { authenticate } }));
    assert.deepEqual(
      stagesOf(set).flatMap(({ taps }) => taps.map(({ variant }) => variant)),
      names,
    );
    assert.equal(set.hooks.authenticate.isTapped('toString'), false);
    assert.equal(set.hooks.authenticate.isTapped('__proto__'), true);
  });
});

describe('registered plugins', () => {
  it('are those that were given, in their order', () => {
    const { plugins } = registered(registration('p'), registration('q'));
    assert.deepEqual(
      plugins.map(({ name }) => name),
      ['p', 'q'],
    );
  });

  it('do not see headers that carry credentials of others, registered before or after, in any case', async () => {
    const seen = new Map<string, string[]>();
    const plugin = (name: string, ...credentials: string[]) => {
      const onHttpRequest = ({ headers }: { headers: object }) => void seen.set(name, Object.keys(headers));
      return registration(name, { hooks: { onHttpRequest } }, { credentials });
    };
    const { hooks } = registered(plugin('p', 'X-Token', 'X-Proof'), plugin('q', 'x-token', 'X-B'), plugin('r'));
    await hooks.onHttpRequest.ask([newExchange({ 'x-token': '1', 'x-proof': '2', 'x-b': '3', 'x-c': '4' })]);
    assert.deepEqual(Object.fromEntries(seen), {
      p: ['x-token', 'x-proof', 'x-c'],
      q: ['x-token', 'x-b', 'x-c'],
      r: ['x-c'],
    });
  });

  it('run nothing by themselves', () => {
    const start = () => assert.fail('started');
    registered(registration('p', { start, stop: start, hooks: { onError: start } }));
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
