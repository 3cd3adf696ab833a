/** APIs of vendors by config alone: each example asks as its vendor wants it, and signs every digit of what it says. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { AbiCoder } from 'ethers';
import { parse } from 'yaml';
import { type Lifetime, suite } from '../support/lifetime.ts';
import { serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';

type Parameters = Readonly<Record<string, unknown>>;

/** What a client sends, what the vendor is asked and says, and what is signed: decoded values, or the error. */
interface Case {
  readonly endpoint: string;
  readonly send?: Parameters;
  /** Method, target and body. */
  readonly asks: string;
  /** The body of the vendor's answer, with status 200. */
  readonly says: string;
  /** Integers in decimal digits. */
  readonly signs?: readonly string[];
  readonly refuses?: string;
}

const now = Date.now();
const week = 7 * 24 * 3_600_000;
/** Times in `apis.yaml`. */
const TIMES: Readonly<Record<string, string>> = {
  '<now>': `${Math.floor(now / 1000)}`,
  '<week-ago>': `${Math.floor((now - week) / 1000)}`,
  '<now-iso>': new Date(now).toISOString(),
  '<week-ago-iso>': new Date(now - week).toISOString(),
  '<minute-ago-ms>': `${now - 60_000}`,
};
const cases = readFileSync(new URL('apis.yaml', import.meta.url), 'utf8');
const CASES: Readonly<Record<string, readonly Case[]>> = parse(
  cases.replaceAll(/<[a-z-]+>/g, (name) => TIMES[name] ?? assert.fail(name)),
);

const FOLDER = new URL('../../examples/apis/', import.meta.url);
const textOf = (name: string) => readFileSync(new URL(`${name}.yaml`, FOLDER), 'utf8');

describe('the examples of APIs', () => {
  it('are all run here, and have at most 40 lines', () => {
    const names = readdirSync(FOLDER).map((file) => file.replace(/\.yaml$/, ''));
    assert.deepEqual(names, Object.keys(CASES).toSorted());
    for (const name of names) assert.ok(textOf(name).trimEnd().split('\n').length <= 40, name);
  });

  for (const [name, cases] of Object.entries(CASES))
    describe(name, async () => {
      const upstream = await upstreamFor(suite);
      // The vendor's own address is the only thing that differs.
      const text = textOf(name).replaceAll(/url: https:\/\/[^/\s]+/g, `url: ${upstream.url}`);
      const config = parse(text);
      const env = Object.fromEntries([...text.matchAll(/\$\{(\w+)\}/g)].map(([, variable = '']) => [variable, 'key']));
      const start = (lifetime: Lifetime) => serviceFor(lifetime, config, { env });
      // What calls share is not asked for again.
      const shared = text.includes('shareFor:') ? undefined : await start(suite);
      const types = config.apis[0].endpoints[0].encoding.type.split(',');

      for (const { endpoint, send, asks, says, signs, refuses } of cases)
        it(`${refuses ?? 'signs'}: ${says}`, async (t) => {
          const service = shared ?? (await start(t));
          upstream.on('*', faults.text(says));
          upstream.requests.length = 0;
          const response = await service.post(endpoint, send);
          const answer = (await response.json()) as { data: string; error?: string };
          const asked = upstream.requests.map(({ method, path, body }) => `${method} ${path}${body && ` ${body}`}`);
          assert.deepEqual([...new Set(asked)], [asks]);
          if (refuses !== undefined) return assert.deepEqual([response.status, answer.error], [502, refuses]);
          const signed = [...AbiCoder.defaultAbiCoder().decode(types, answer.data)].map(String);
          assert.deepEqual(signed, signs, JSON.stringify(answer));
        });
    });
});
