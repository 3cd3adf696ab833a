/** Names are looked up by the system's resolver, once while the addresses are kept. */
import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { describe, it, type TestContext } from 'node:test';
import { lookUp } from '../../../lib/http/client/names.ts';
import { knowNames } from '../../support/names.ts';

function find(host: string, all = true): Promise<readonly unknown[]> {
  return new Promise((resolve, reject) => {
    lookUp(host, { all }, (error, ...found) => (error ? reject(error) : resolve(found)));
  });
}

const v4 = (address: string): LookupAddress => ({ address, family: 4 });

describe('host names', () => {
  it('are looked up once for all who ask meanwhile, and again after ten seconds', async (t: TestContext) => {
    const names = knowNames(t, { 'a.test': ['192.0.2.1', '2001:db8::1'], 'b.test': ['192.0.2.2'] });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const all = [[v4('192.0.2.1'), { address: '2001:db8::1', family: 6 }]];
    assert.deepEqual(await Promise.all([find('a.test'), find('a.test'), find('b.test')]), [
      all,
      all,
      [[v4('192.0.2.2')]],
    ]);
    assert.deepEqual(await find('a.test', false), ['192.0.2.1', 4]);
    t.mock.timers.tick(9999);
    await find('a.test');
    assert.deepEqual(names.asked, ['a.test', 'b.test']);
    t.mock.timers.tick(1);
    await find('a.test');
    assert.deepEqual(names.asked, ['a.test', 'b.test', 'a.test']);
  });

  it('without an address are looked up again after a second', async (t: TestContext) => {
    const names = knowNames(t, { 'c.test': 'EAI_AGAIN' });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const elapsed of [0, 999]) {
      t.mock.timers.tick(elapsed);
      await assert.rejects(find('c.test'), { code: 'EAI_AGAIN' });
    }
    assert.deepEqual(names.asked, ['c.test']);
    t.mock.timers.tick(1);
    names.set('c.test', ['192.0.2.1']);
    assert.deepEqual(await find('c.test'), [[v4('192.0.2.1')]]);
  });

  it('below localhost never leave the machine', async (t: TestContext) => {
    const names = knowNames(t);
    for (const name of ['some.localhost', 'Some.LOCALHOST.'])
      assert.match(JSON.stringify(await find(name)), /"127\.0\.0\.1"|"::1"/);
    assert.deepEqual(names.asked, ['localhost', 'localhost']);
  });
});
