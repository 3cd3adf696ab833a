/** A wrong x402 block is an error that names the place. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorsOf, warningsOf } from '../support/config.ts';
import { RECIPIENT } from '../support/x402.ts';

const GOOD = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const BAD = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02914';
const CHECKSUM = 'the checksum of the address is wrong (EIP-55)';
const terms = { type: 'x402', network: 1, rpc: 'http://127.0.0.1:9', token: GOOD, amount: '1', recipient: RECIPIENT };

/** An API with that auth, whose endpoints have these; `undefined` for none of their own. */
function config(auth: unknown, ...own: unknown[]) {
  const endpoints = own.map((each, index) => {
    return { name: `e${index}`, path: `/${index}`, ...(each === undefined ? {} : { auth: each }) };
  });
  const api = { name: 'a', url: 'http://127.0.0.1:9', ...(auth === undefined ? {} : { auth }), endpoints };
  return { settings: { state: { type: 'file', path: 'state' } }, apis: [api] };
}

describe('x402 in the config: an error names the place that is wrong', () => {
  const both = { ...terms, token: BAD, recipient: RECIPIENT.replace('C', 'c') };
  const cases: [string, ReturnType<typeof config>, string[]][] = [
    [
      'on the API, once for all its endpoints',
      config(both, undefined, undefined),
      ['apis[0].auth.token', 'apis[0].auth.recipient'],
    ],
    [
      'in a list on the API',
      config([{ type: 'free' }, terms, both], undefined),
      ['apis[0].auth[2].token', 'apis[0].auth[2].recipient'],
    ],
    [
      'on an endpoint',
      config(terms, undefined, both),
      ['apis[0].endpoints[1].auth.token', 'apis[0].endpoints[1].auth.recipient'],
    ],
    [
      'in a list on an endpoint',
      config(undefined, [terms, both]),
      ['apis[0].endpoints[0].auth[1].token', 'apis[0].endpoints[0].auth[1].recipient'],
    ],
    [
      'on the endpoint that overrides a sound API',
      config([terms], both),
      ['apis[0].endpoints[0].auth.token', 'apis[0].endpoints[0].auth.recipient'],
    ],
  ];
  for (const [what, given, paths] of cases) {
    it(what, async () =>
      assert.deepEqual(
        await errorsOf(given),
        paths.map((path) => `${path}: ${CHECKSUM}`),
      ),
    );
  }

  it('a URL that is none', async () => {
    assert.deepEqual(await errorsOf(config({ ...terms, rpc: 'http://[' }, undefined)), [
      'apis[0].auth.rpc: is no valid URL',
    ]);
    assert.deepEqual(
      await errorsOf(config({ ...terms, rpc: 'https://user:pass@node.example/key?a=b' }, undefined)),
      [],
    );
  });

  it('a password that is not percent-encoded', async () => {
    const rpc = 'http://user:100%@node.example/';
    assert.deepEqual(await errorsOf(config([{ ...terms, rpc }], undefined)), [
      'apis[0].auth[0].rpc: the user name and password must be percent-encoded',
    ]);
  });

  it('an amount that cannot be paid', async () => {
    const most = 2n ** 256n - 1n;
    assert.deepEqual(await errorsOf(config({ ...terms, amount: String(most) }, undefined)), []);
    assert.deepEqual(await errorsOf(config({ ...terms, amount: String(most + 1n) }, undefined)), [
      'apis[0].auth.amount: is more than any token can hold (a uint256)',
    ]);
  });

  it('a recipient that nobody is', async () => {
    const recipient = `0x${'0'.repeat(40)}`;
    assert.deepEqual(await errorsOf(config({ ...terms, recipient }, undefined)), [
      'apis[0].auth.recipient: is the zero address: payments would be lost',
    ]);
    const token = `0x${'1'.repeat(40)}`;
    assert.deepEqual(await errorsOf(config({ ...terms, token, recipient: token }, undefined)), [
      'apis[0].auth.recipient: is the token itself: payments would be lost',
    ]);
    const coin = { ...terms, token: recipient, recipient };
    assert.equal((await errorsOf(config(coin, undefined))).length, 1);
  });

  it('warns of payments in memory, which a restart forgets', async () => {
    const warning =
      'settings.state: keeps payments in memory: after a restart, those that were made before it are refused (Payment too old); use file or redis';
    const { apis } = config(terms, undefined, undefined);
    assert.deepEqual(await warningsOf({ apis }), [warning]);
    assert.deepEqual(await warningsOf({ apis, settings: { state: 'memory' } }), [warning]);
    assert.deepEqual(await warningsOf(config(terms, undefined)), []);
  });

  it('warns of an expiry in seconds', async () => {
    assert.deepEqual(await warningsOf(config({ ...terms, expiry: 300 }, undefined)), [
      'apis[0].auth.expiry: is in milliseconds: less than 10 seconds to pay',
    ]);
  });

  it('warns of more confirmations than come before a payment is too old', async () => {
    const late = (seconds: number, needed: number, age: number, cure: string) => [
      `apis[0].auth.confirmations: is never reached in time: with a block every ${seconds} s it takes ${needed} s, and a payment is too old after ${age} s, which is 10 minutes and "expiry": ask for ${cure}`,
    ];
    const most = { ...terms, confirmations: 1000 };
    const warnings = (changes: object) => warningsOf(config({ ...most, ...changes }, undefined));
    assert.deepEqual(await warnings({}), late(12, 11_988, 900, '75 at most, or for 100 with an "expiry" of 600000'));
    assert.deepEqual(await warnings({ expiry: 600_000 }), late(12, 11_988, 1200, '100 at most'));
    assert.deepEqual(
      await warnings({ network: 8453 }),
      late(2, 1998, 900, '450 at most, or for 600 with an "expiry" of 600000'),
    );
    assert.deepEqual(await warnings({ network: 42161 }), []);
    assert.deepEqual(await warnings({ confirmations: 75 }), []);
    assert.equal((await warnings({ confirmations: 76 })).length, 1);
    assert.deepEqual(await warnings({ confirmations: 100, expiry: 600_000 }), []);
  });

  it('warns of an expiry that no proof can use up', async () => {
    assert.deepEqual(await warningsOf(config({ ...terms, expiry: 600_000 }, undefined)), []);
    assert.deepEqual(await warningsOf(config({ ...terms, expiry: 600_001 }, undefined)), [
      'apis[0].auth.expiry: is longer than any proof of payment is valid (600000)',
    ]);
  });
});
