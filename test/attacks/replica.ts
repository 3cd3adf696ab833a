import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { Running } from '../cli/run.ts';
import { startIn, urlOf } from '../cli/started.ts';
import { TEST_KEY } from '../support/service.ts';
import type { Block } from '../support/x402-shop.ts';

export const BUSY = 'Payment is being settled, try again';

/** One payment, and what came of it. */
export interface Bought {
  readonly scheme: 'exact' | 'native';
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly nonce?: string;
  answers: number;
  /** Whether a process that was killed may have owed an answer to it, or the payment back. */
  wasCut: boolean;
}

/** A process of the service, started again and again. */
export class Replica {
  readonly #t: TestContext;
  readonly #config: Block;
  #running: Running | undefined;
  url = '';
  readonly ids: Record<string, string> = {};

  constructor(t: TestContext, config: Block) {
    this.#t = t;
    this.#config = config;
  }

  /** An engine that hangs just then keeps a process from starting: it is started again, as by a supervisor. */
  async start(tries = 5): Promise<void> {
    await this.#start().catch((error: Error) => {
      if (tries === 0 || !error.message.includes('cannot start')) throw error;
      return this.start(tries - 1);
    });
  }

  async #start(): Promise<void> {
    const config = JSON.stringify({ version: '1.0', ...this.#config });
    // Proofs are for the service of this key.
    const running = await startIn(this.#t, { 'c.yaml': config }, { SERVICE_PRIVATE_KEY: TEST_KEY });
    for (const name of ['exact', 'native']) {
      const [, id = ''] = await running.output(new RegExp(`a/${name} (0x[0-9a-f]{64})`));
      this.ids[`a/${name}`] = id;
    }
    this.#running = running;
    this.url = await urlOf(running);
  }

  /** @returns what it wrote. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<string> {
    const running = this.#running;
    this.#running = undefined;
    if (running === undefined) return '';
    running.child.kill(signal);
    const { code, stdout } = await running.ended;
    if (signal === 'SIGTERM') assert.equal(code, 0, stdout);
    return stdout;
  }

  /** With a connection of its own, so that no request meets one that ends. */
  post(endpoint: string, parameters: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
    const options = { method: 'POST', agent: false, headers: { 'Content-Type': 'application/json', ...headers } };
    return new Promise((resolve, reject) => {
      const sent = request(`${this.url}/endpoints/${this.ids[endpoint]}`, options, async (response) => {
        try {
          const given = Object.entries(response.headers).map(([name, value]): [string, string] => [
            name,
            String(value),
          ]);
          resolve(new Response(await text(response), { status: response.statusCode ?? 0, headers: given }));
        } catch (error) {
          reject(error);
        }
      });
      sent.on('error', reject);
      sent.end(JSON.stringify({ parameters }));
    });
  }
}

/** Asks once. @returns the text of the refusal; nothing for a signed answer. */
export async function ask(replica: Replica, one: Bought): Promise<string | undefined> {
  const asked = replica.post(`a/${one.scheme}`, { id: one.id }, one.headers);
  const response = await asked.catch((error) => {
    one.wasCut ||= Object(error).code !== 'ECONNREFUSED';
  });
  if (response === undefined) return 'no answer';
  if (response.status === 200) {
    one.answers += 1;
    return undefined;
  }
  const { error } = (await response.json()) as { error: string };
  one.wasCut ||= error === 'Payment verification unavailable';
  if (error === BUSY) assert.deepEqual([response.status, response.headers.get('retry-after')], [402, '1']);
  return error;
}

const isUsed = (refusal: string | undefined) =>
  refusal === 'Payment already used' || refusal === 'invalid_exact_evm_nonce_already_used';

/** A client that tries until it has an answer, or learns that there will be none; and then once more, for nothing. */
export async function buy(replicas: readonly Replica[], one: Bought, random: () => number): Promise<void> {
  const any = () => replicas[Math.floor(random() * replicas.length)] ?? assert.fail('no replica');
  for (let tries = 0; tries < 40 && one.answers === 0; tries++) {
    const refusal = await ask(any(), one);
    // One that another of its own requests still holds says the same, in the native scheme.
    if (one.wasCut && isUsed(refusal) && tries > 20) break;
    if (refusal !== undefined) await setTimeout(200 + random() * 800);
  }
  if (one.answers > 0) await ask(any(), one);
}
