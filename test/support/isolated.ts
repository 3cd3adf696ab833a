import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { deserialize } from 'node:v8';
import { acts, notes } from './plugin-files.ts';
import type { RunningService } from './service.ts';
import { eventually } from './wait.ts';

/** What functions of a test need that are sent to a plugin in another process, by the names under which they use it. */
export type Scope = Readonly<Record<string, unknown>>;

/** The same in the process of the plugin: notes go to the test, and its acts come from there. */
const preamble = (path: string) => `
import testAssert from 'node:assert/strict';
import { connect as testConnect } from 'node:net';
import { serialize as testSerialize } from 'node:v8';
const testSocket = testConnect(${JSON.stringify(path)});
const testActs = new Map();
globalThis.testNote = (topic, value) => {
  testSocket.write(testSerialize({ topic, value }).toString('base64') + '\\n');
};
const testNotes = { add: globalThis.testNote };
globalThis.testAct = (name, context) => testActs.get(name)?.(context);
await new Promise((resolve) => {
  let rest = '';
  testSocket.setEncoding('utf8');
  testSocket.on('data', (text) => {
    const lines = (rest + text).split('\\n');
    rest = lines.pop();
    for (const line of lines) {
      const { name, source } = JSON.parse(line);
      if (name === undefined) testActs.clear();
      else testActs.set(name, new Function('assert', 'notes', '__name', 'return ' + source)(testAssert, testNotes, (f) => f));
      testSocket.write('heard\\n');
    }
    resolve();
  });
});
`;

/** Source of a value that a function uses; what it uses in turn is not carried. */
function sourceOf(value: unknown): string {
  if (typeof value === 'function') return `(${value})`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `({${Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}: ${sourceOf(member)}`)}})`;
}

function line(name: string, act: unknown, scope: Scope): string {
  const names = Object.entries(scope).map(([key, value]) => `const ${key} = ${sourceOf(value)};`);
  return `${JSON.stringify({ name, source: `(() => { ${names.join(' ')} return ${act}; })()` })}\n`;
}

/** Lines that processes have been sent and have not heard of yet. */
const unheard = new Map<Socket, number>();

function tell(socket: Socket, text: string): void {
  unheard.set(socket, (unheard.get(socket) ?? 0) + 1);
  socket.write(text);
}

/** Resolves once every process knows the {@link acts} as they are: a call may reach it by another way before them. */
export async function arrived(): Promise<void> {
  const isHeard = () => [...unheard.values()].every((lines) => lines <= 0);
  await eventually(isHeard, 'the processes of plugins to hear what they are to do');
}

/**
 * Lets plugins of this suite run in processes of their own and yet do what {@link acts} say, and write into {@link notes}.
 * @param scope what the acts use.
 * @returns what makes such a plugin file of one.
 */
export function isolatedFiles(scope: Scope = {}): (source: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'sdp-acts-'));
  const server = createServer((socket) => {
    let rest = '';
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const note of lines) {
        if (note === 'heard') unheard.set(socket, (unheard.get(socket) ?? 0) - 1);
        else notes.all.push(deserialize(Buffer.from(note, 'base64')));
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => unheard.delete(socket));
    tell(socket, '{}\n');
    for (const [name, act] of acts) tell(socket, line(name, act, scope));
  });
  const path = join(folder, 'socket');
  server.listen(path);
  const forget = acts.listen((name, act, own) => {
    for (const socket of unheard.keys())
      tell(socket, name === undefined ? '{}\n' : line(name, act, { ...scope, ...own }));
  });
  after(() => {
    forget();
    server.close();
    for (const socket of unheard.keys()) socket.destroy();
    rmSync(folder, { recursive: true });
  });
  return (source) => preamble(path) + source;
}

/** Resolves once all processes of isolated plugins that have ended since the log began were replaced. */
export async function recovered({ logs }: RunningService): Promise<void> {
  const count = (text: RegExp) => logs.filter(({ message }) => text.test(message)).length;
  const isReplaced = () => count(/its process has ended/) <= count(/another process is ready$/);
  await eventually(isReplaced, 'the processes of plugins to be replaced');
}
