/** The report of a call's result `{data}`, as a script writes it. @param data an expression. */
export function resultOf(data: string): string {
  return `{ k: 'done', i: id, r: [['data', JSON.stringify(${data})]] }`;
}

/**
 * A process that says to the service whatever a call has it say, as a plugin could that found a way to speak for the code
 * around it. Each context has a `script`, a function body that uses `id`, `say(report)`, `write(bytes)` and `frame(text)`.
 */
export const speaker = `
import { readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

const token = Buffer.alloc(16);
for (let had = 0; had < 16; ) had += readSync(3, token, had, 16 - had, null);

function write(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(4, bytes, at);
}
function frame(text) {
  const head = Buffer.alloc(20);
  head.writeUInt32LE(16 + Buffer.byteLength(text));
  token.copy(head, 4);
  return Buffer.concat([head, Buffer.from(text)]);
}
const say = (report) => write(frame(JSON.stringify(report)));
const claim = new Float64Array(1);

const AsyncFunction = (async () => undefined).constructor;
const answers = {
  load: () => say({ k: 'loaded', plugin: { is: 'object', members: {} }, configSchema: { is: 'absent' }, keys: { is: 'absent' } }),
  make: () => say({ k: 'made', plugin: { is: 'object', members: {} } }),
  ping: () => say({ k: 'pong' }),
  call: ({ i, c: { script } }) => {
    claim[0] = i;
    writeSync(5, Buffer.from(claim.buffer), 0, 8, 0);
    return new AsyncFunction('id', 'say', 'write', 'frame', script)(i, say, write, frame);
  },
};

let rest = Buffer.alloc(0);
new Socket({ fd: 3, readable: true, writable: false }).on('end', () => process.exit()).on('data', (chunk) => {
  rest = Buffer.concat([rest, chunk]);
  while (rest.length >= 8 && rest.length >= 4 + rest.readUInt32LE(0)) {
    const order = JSON.parse(rest.toString('utf8', 8, 8 + rest.readUInt32LE(4)));
    rest = rest.subarray(4 + rest.readUInt32LE(0));
    answers[order.k]?.(order);
  }
});
`;
