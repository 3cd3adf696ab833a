import { createServer } from 'node:http';
import Router from '@koa/router';
import { createKeccak } from 'hash-wasm';
import Koa, { type Context } from 'koa';
import { koaBody } from 'koa-body';
import { pino } from 'pino';
import { stringify as stable } from 'safe-stable-stringify';
import secp256k1 from 'secp256k1';
import { Pool } from 'undici';
import { listen, urlOf } from '../../lib/http/listen.ts';

/**
 * The least code that gives a client the same signed answers: one upstream call, one extraction, three hashes, one
 * signature. No limits, no checks of shapes, no plugins. It uses the fastest library for each step, and every answer is
 * verified by the benchmark before the first measurement. Koa, its router and koa-body serve it, with a log line.
 */

const KEY = 'benchmark-key-of-16';
const upstream = new Pool(process.env.UPSTREAM ?? '', { connections: 64 });
const key = Buffer.from('11'.repeat(32), 'hex');
const endpointId = Buffer.from('22'.repeat(32), 'hex');
const keccak = await createKeccak(256);
const hash = (bytes: Uint8Array) => Buffer.from(keccak.init().update(bytes).digest('binary'));
const node = `0x${hash(secp256k1.publicKeyCreate(key, false).subarray(1)).subarray(12).toString('hex')}`;
const PREFIX = Buffer.from('\x19Ethereum Signed Message:\n32');
const id = `0x${endpointId.toString('hex')}`;

/** Writes one line for each request asynchronously, as the service does. */
const log = pino({ base: null }, pino.destination({ dest: 1, sync: false, minLength: 4096 }));

function word(value: bigint): Buffer {
  return Buffer.from(BigInt.asUintN(256, value).toString(16).padStart(64, '0'), 'hex');
}

function sign(timestamp: number, data: Uint8Array): string {
  const digest = hash(Buffer.concat([endpointId, word(BigInt(timestamp)), data]));
  const { signature, recid } = secp256k1.ecdsaSign(hash(Buffer.concat([PREFIX, digest])), key);
  return `0x${Buffer.from(signature).toString('hex')}${recid === 0 ? '1b' : '1c'}`;
}

async function ask(path: string, body: unknown): Promise<Record<string, unknown>> {
  const { parameters } = body as { readonly parameters: { readonly symbol: string } };
  const target = `${path}?symbol=${encodeURIComponent(parameters.symbol)}`;
  const answer = await upstream.request({ path: target, method: 'GET', headers: { accept: 'application/json' } });
  return (await answer.body.json()) as Record<string, unknown>;
}

/** Returns the number times 1e18, computed on its digits. */
function scaled(number: number): bigint {
  const [whole = '', fraction = ''] = String(number).split('.');
  return BigInt(whole + fraction.padEnd(18, '0').slice(0, 18));
}

/** Returns the answer of an encoded endpoint. */
function encoded(price: number) {
  const data = word(scaled(price));
  const timestamp = Math.floor(Date.now() / 1000);
  return { node, endpointId: id, timestamp, data: `0x${data.toString('hex')}`, signature: sign(timestamp, data) };
}

const kept = JSON.stringify(encoded(2064.01));

/** The answers by path: an object is written as JSON for each request, a text was made at the start. @param body parsed body. */
const answers: Readonly<Record<string, (body: unknown) => Promise<object> | string>> = {
  '/encoded': async (body) => encoded(Number((await ask('/small', body)).price)),
  '/raw': async (body) => {
    const rawData = await ask('/large', body);
    const timestamp = Math.floor(Date.now() / 1000);
    return { node, endpointId: id, timestamp, rawData, signature: sign(timestamp, hash(Buffer.from(stable(rawData)))) };
  },
  '/cached': () => kept,
};

const app = new Koa();
const router = new Router();
for (const [path, answer] of Object.entries(answers)) {
  router.post(path, koaBody({ jsonLimit: '64kb', urlencoded: false, text: false }), async (ctx: Context) => {
    const started = performance.now();
    if (ctx.headers['x-api-key'] === KEY) {
      const body = answer(ctx.request.body);
      ctx.body = typeof body === 'string' ? body : await body;
      ctx.type = 'application/json';
    } else ctx.status = 401;
    log.info({ path, status: ctx.status, milliseconds: performance.now() - started });
  });
}
app.use(router.routes());
const server = createServer(app.callback());
await listen(server, { port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${urlOf(server)}\n`);
