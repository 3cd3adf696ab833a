import assert from 'node:assert/strict';
import { AbiCoder } from 'ethers';
import type { Lifetime } from './lifetime.ts';
import { served } from './served.ts';
import { faults } from './upstream.ts';

type Values = Readonly<Record<string, unknown>>;

interface Encoding extends Values {
  /** Types with commas between them. */
  readonly type: string;
}

/** A service with an endpoint for each encoding: its upstream says what each request tells it to say. */
export async function encodingsFor(
  lifetime: Lifetime,
  encodings: Readonly<Record<string, Encoding>>,
  { endpoints = {}, ...more }: { endpoints?: Parameters<typeof served>[1] } & Parameters<typeof served>[2] = {},
) {
  let answer = '';
  const all = Object.fromEntries(Object.entries(encodings).map(([name, encoding]) => [name, { encoding }]));
  const answers = { '*': faults.text('') };
  const { upstream, encoded, refused, ...api } = await served(lifetime, { ...all, ...endpoints }, { ...more, answers });
  upstream.on('*', (...request) => faults.text(answer)(...request));
  const coder = AbiCoder.defaultAbiCoder();
  return {
    ...api,
    /** What an endpoint responds to this answer of the upstream. */
    ask: (endpoint: string, text: string) => {
      answer = text;
      return api.post(endpoint);
    },
    /** Asserts which values an endpoint signs for this answer of the upstream, in the canonical encoding. */
    signs: async (values: readonly unknown[], endpoint: string, text: string, parameters: Values = {}) => {
      answer = text;
      const { data } = await encoded(endpoint, parameters);
      const pinned = encodings[endpoint]?.type;
      const types = (pinned === '*' ? String(parameters._type) : (pinned ?? '')).split(',');
      assert.deepEqual(coder.decode(types, data).toArray(), values, `${text} at ${endpoint}`);
      assert.equal(coder.encode(types, values), data, 'the canonical encoding');
    },
    /** Asserts that an endpoint refuses this answer of the upstream. */
    refuses: async (endpoint: string, text: string, message = 'API call failed', parameters?: object) => {
      answer = text;
      await refused(502, message, endpoint, parameters);
    },
  };
}
