import { readSync, writeSync, writevSync } from 'node:fs';
import { Socket } from 'node:net';
import {
  CLAIMS,
  LONGEST_FRAME,
  ORDERS,
  type Order,
  REPORTS,
  RETIRED_AT,
  type Report,
  TOKEN_BYTES,
} from '../protocol.ts';

/** Taken before the plugin is loaded, which may replace what everybody uses. */
const { stringify, parse } = JSON;
const bytesOf = Buffer.from;
const [read, write, writeAll] = [readSync, writeSync, writevSync];
const exit = process.exit.bind(process);

const head = Buffer.alloc(4 + TOKEN_BYTES);
const claim = Buffer.alloc(8);
const claimed = new Float64Array(claim.buffer, claim.byteOffset, 1);
const retired = Buffer.alloc(1);

/** Says it at once: what comes next may never end. */
export function report(what: Report): void {
  let body = bytesOf(stringify(what));
  if (body.length + TOKEN_BYTES > LONGEST_FRAME && 'i' in what) {
    body = bytesOf(stringify({ k: 'threw', i: what.i, text: 'Error: returned more than 4 MiB' }));
  }
  const length = body.length + TOKEN_BYTES;
  for (let i = 0; i < 4; i += 1) head[i] = (length >>> (8 * i)) & 255;
  if (writeAll(REPORTS, [head, body]) !== 4 + length) exit(1);
}

/** Notes that a call begins, unless another process is to do what has not begun yet. @returns whether it may. */
export function begins(id: number): boolean {
  claimed[0] = id;
  write(CLAIMS, claim, 0, 8, 0);
  read(CLAIMS, retired, 0, 1, RETIRED_AT);
  return retired[0] === 0;
}

/** @param take gets each order and the text that belongs to it; without a service there is nothing to do. */
export function listen(take: (order: Order, text: (() => string) | undefined) => void): void {
  // What its frames begin with: never a string, nor in the memory that small buffers share, where the plugin finds it.
  for (let had = 4; had < head.length; ) had += read(ORDERS, head, had, head.length - had, null) || exit(0);
  let rest: Buffer = Buffer.alloc(0);
  const socket = new Socket({ fd: ORDERS, readable: true, writable: false });
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (rest.length - at >= 8) {
      const end = at + 4 + rest.readUInt32LE(at);
      if (rest.length < end) break;
      const middle = at + 8 + rest.readUInt32LE(at + 4);
      const order = parse(rest.toString('utf8', at + 8, middle)) as Order;
      const tail = rest.subarray(middle, end);
      take(order, tail.length === 0 ? undefined : () => tail.toString('utf8'));
      at = end;
    }
    rest = rest.subarray(at);
  });
  for (const event of ['end', 'error', 'close']) socket.on(event, () => exit(0));
}
