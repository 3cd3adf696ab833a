/** A clock that several upstreams contradict is told, and one wrong upstream decides nothing. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { UpstreamClocks } from '../../builtins/call-api/clock.ts';
import { scrape } from '../support/metrics.ts';
import { reload } from '../support/reload.ts';
import { serviceFor } from '../support/service.ts';
import { type Handler, startUpstream } from '../support/upstream.ts';

const OFF = 'this clock differs from those of the upstreams: timestamps may be wrong';
const AGREES = 'this clock agrees with those of the upstreams again';

/** A host whose answers say this, and whose clock is so many seconds behind. */
interface Host {
  behind: number;
  headers: Readonly<Record<string, string>>;
  /** Called before it answers. */
  wait: () => void;
}

/** Time stands still for the service unless the test has it pass, for the clock and for all that measures time. */
async function start(t: TestContext, names: readonly string[]) {
  let passed = 0;
  const [steady, clock] = [performance.now(), Math.ceil(Date.now() / 1000) * 1000];
  t.mock.method(performance, 'now', () => steady + passed);
  t.mock.method(Date, 'now', () => clock + passed);
  const hosts = new Map<string, Host>();
  const apis = await Promise.all(
    names.map(async (name) => {
      const host: Host = { behind: 0, headers: {}, wait: () => undefined };
      hosts.set(name, host);
      const answer: Handler = (_req, res) => {
        host.wait();
        const date = new Date(Date.now() - host.behind * 1000).toUTCString();
        res.writeHead(200, { Date: date, ...host.headers }).end('{"price":7}');
      };
      const upstream = await startUpstream({ '*': answer });
      t.after(() => upstream.close());
      return { name, url: upstream.url, auth: { type: 'free' }, endpoints: [{ name: 'e', path: '/e' }] };
    }),
  );
  const config = { settings: { metrics: { port: 0 } }, apis };
  const service = await serviceFor(t, config);
  const ask = async (name: string) => assert.equal((await service.post(`${name}/e`)).status, 200);
  return {
    service,
    config,
    host: (name: string) => hosts.get(name) ?? assert.fail(name),
    pass: (seconds: number) => {
      passed += seconds * 1000;
    },
    ask,
    /** Asks these hosts twice, with four seconds in between. */
    askTwice: async (...asked: string[]) => {
      for (const name of asked) await ask(name);
      passed += 4000;
      for (const name of asked) await ask(name);
      passed += 4000;
    },
    said: () =>
      service.logs.flatMap(({ level, message, fields }) =>
        /this clock/.test(message) ? [[level, message, fields.hosts]] : [],
      ),
    offset: async () => (await scrape(service)).value('clock_offset_seconds') ?? assert.fail('there is a gauge'),
  };
}

// A header is cut to whole seconds. The service takes it for half a second more, and here it is exact.
describe('the clock of a service, by those of its upstreams', () => {
  it('is no number until two answers of a host have told, and then the seconds that it is ahead', async (t) => {
    const { host, ask, pass, offset, said } = await start(t, ['a']);
    host('a').behind = 3;
    assert.equal(await offset(), Number.NaN);
    await ask('a');
    assert.equal(await offset(), Number.NaN);
    pass(4);
    await ask('a');
    assert.equal(await offset(), 2.5);
    assert.deepEqual(said(), []);
  });

  it('differs by more than 5 seconds: that is said once, also over a reload, and when it is over', async (t) => {
    const { service, config, host, askTwice, offset, said } = await start(t, ['a']);
    host('a').behind = 7;
    await askTwice('a');
    await askTwice('a');
    assert.equal(await offset(), 6.5);
    await reload(service, config);
    await askTwice('a');
    assert.deepEqual(said(), [['warn', OFF, 1]]);
    host('a').behind = -7;
    await askTwice('a');
    assert.equal(await offset(), -7.5);
    assert.deepEqual(said(), [['warn', OFF, 1]]);
    host('a').behind = 0;
    await askTwice('a');
    assert.equal(await offset(), -0.5);
    assert.deepEqual(said().slice(1), [['info', AGREES, 1]]);
  });

  it('is not wrong because one upstream is, whichever is asked first', async (t) => {
    const { host, ask, askTwice, offset, said } = await start(t, ['wrong', 'right', 'other']);
    host('wrong').behind = 3600;
    await ask('right');
    await askTwice('wrong');
    assert.equal(await offset(), Number.NaN);
    await askTwice('right');
    assert.equal(await offset(), -0.5);
    await askTwice('other');
    assert.equal(await offset(), -0.5);
    assert.deepEqual(said(), []);
    host('other').behind = 60;
    await askTwice('other');
    assert.equal(await offset(), 59.5);
    assert.deepEqual(said(), [['warn', OFF, 3]]);
  });

  it('is not judged by answers out of a cache, whether they say so or not', async (t) => {
    const { host, askTwice, offset, said } = await start(t, ['a']);
    host('a').behind = 60;
    host('a').headers = { Age: '60' };
    await askTwice('a');
    host('a').headers = { Date: new Date(Date.now() - 60_000).toUTCString() };
    await askTwice('a');
    await askTwice('a');
    assert.equal(await offset(), Number.NaN);
    host('a').headers = { Date: 'yesterday' };
    await askTwice('a');
    assert.equal(await offset(), Number.NaN);
    assert.deepEqual(said(), []);
    host('a').headers = { Age: '0' };
    await askTwice('a');
    assert.equal(await offset(), 59.5);
  });

  it('is not judged by answers that took long, nor by those of ten minutes ago', async (t) => {
    const { host, pass, askTwice, offset, said } = await start(t, ['a']);
    host('a').behind = 6;
    host('a').wait = () => pass(2);
    await askTwice('a');
    assert.equal(await offset(), Number.NaN);
    host('a').wait = () => undefined;
    await askTwice('a');
    assert.equal(await offset(), 5.5);
    assert.equal(said().length, 1);
    pass(600);
    assert.equal(await offset(), Number.NaN);
  });

  it('is judged by a hundred hosts at most, those that were asked first', (t) => {
    let passed = 0;
    t.mock.method(performance, 'now', () => passed);
    const nothing = () => undefined;
    const clocks = new UpstreamClocks(() => passed, { debug: nothing, info: nothing, warn: nothing, error: nothing });
    const lookTwice = (kind: string, count: number, behind: number) => {
      for (const _ of [1, 2]) {
        passed += 4000;
        const date = new Date(passed - behind).toUTCString();
        for (let i = 0; i < count; i++) clocks.look(`${kind}${i}.example`, { date }, 0);
      }
    };
    lookTwice('right', 100, 500);
    lookTwice('wrong', 101, 3_600_000);
    assert.ok(Math.abs(clocks.offset ?? 9999) < 1000, String(clocks.offset));
  });
});
