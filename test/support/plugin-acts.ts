import { KEY } from '../cli/service-config.ts';
import { pluginFile } from './plugin-files.ts';

/** How a process ends. */
interface End {
  readonly code: number | null;
  readonly signal?: string;
}

/** What a hook can do to the service, and what comes of it. */
export interface PluginAct {
  /** The body of `onHttpRequest`, for whoever asks for it. */
  readonly body: string;
  /** The client's answer where the plugin is isolated. */
  readonly isolated: string;
  /**
   * What comes of it in the process of the service: the client's answer, or how the service ends. Untried is what would harm
   * the machine of the test, and logged what ends a service in tests of what its log says then.
   */
  readonly here: { readonly answer: string } | End | 'untried' | 'logged';
}

const DROPPED = '403 Request dropped by plugin "actor"';
/** What is said of an act that takes too long; on a busy machine any may. */
export const EXHAUSTED = '403 Plugin "actor" budget exhausted';

/** The watchdog ends a service whose event loop does not turn. */
const stuck = { code: null, signal: 'SIGKILL' };
/** V8 ends a process whose heap is full. */
const full = { code: null, signal: 'SIGABRT' };
const same = (isolated: string) => ({ isolated, here: { answer: isolated } });
const told = (isolated: string, here: string) => ({ isolated: `499 ${isolated}`, here: { answer: `499 ${here}` } });

/** Says what came of an attempt. */
const attempt = (body: string) =>
  `const attempt = async () => { ${body} };
  return { reject: true, status: 499, message: await attempt().catch((error) => error.code ?? error.message) };`;

/** Whether a text has the key of the test's service. */
const KEY_IN = `.includes('${KEY.slice(2, 18)}') ? 'the key' : 'no key'`;

export const pluginActs: Readonly<Record<string, PluginAct>> = {
  throws: { body: `throw new Error('no');`, ...same(DROPPED) },
  'throws nothing': { body: 'throw undefined;', ...same(DROPPED) },
  rejects: { body: `return Promise.reject('no');`, ...same(DROPPED) },
  'returns something of the wrong shape': { body: 'return { reject: () => true };', ...same(DROPPED) },
  'returns a cycle': { body: 'const a = { reject: true }; a.message = a; return a;', ...same(DROPPED) },
  'returns 5 MiB': { body: `return { reject: true, message: 'x'.repeat(5 << 20) };`, ...same(DROPPED) },
  'never answers': { body: 'return new Promise(() => {});', ...same(EXHAUSTED) },
  'answers late': { body: 'return new Promise((resolve) => setTimeout(resolve, 2000));', ...same(EXHAUSTED) },
  spins: { body: 'for (;;);', isolated: EXHAUSTED, here: 'logged' },
  'spins in microtasks': {
    body: 'const next = () => queueMicrotask(next); next(); return new Promise(() => {});',
    isolated: EXHAUSTED,
    here: 'logged',
  },
  'spins in next ticks': {
    body: 'const next = () => process.nextTick(next); next(); return new Promise(() => {});',
    isolated: EXHAUSTED,
    here: stuck,
  },
  'returns a getter that spins': {
    body: 'return { get reject() { for (;;); } };',
    isolated: EXHAUSTED,
    here: stuck,
  },
  'waits for a lock': {
    body: 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);',
    isolated: EXHAUSTED,
    here: 'logged',
  },
  'computes outside of JavaScript': {
    body: `(await import('node:crypto')).pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512');`,
    isolated: EXHAUSTED,
    here: stuck,
  },
  'takes 1 GiB of buffers': {
    body: 'globalThis.kept = []; for (let i = 0; i < 64; i++) kept.push(Buffer.alloc(1 << 24, 1));',
    isolated: DROPPED,
    here: 'untried',
  },
  'takes 1 GiB of strings': {
    // To look at a character makes one piece of a text.
    body: `globalThis.kept = []; for (let i = 0; ; i++) (kept[i] = JSON.stringify({ i }).repeat(1 << 16)).charCodeAt(i);`,
    isolated: DROPPED,
    here: full,
  },
  'takes 1 GiB of maps': {
    body: 'globalThis.kept = []; for (;;) kept.push(new Map([[kept, {}]]));',
    isolated: DROPPED,
    here: full,
  },
  exits: { body: 'process.exit(7);', isolated: DROPPED, here: 'logged' },
  aborts: { body: 'process.abort();', isolated: DROPPED, here: 'logged' },
  kills: { body: `process.kill(process.pid, 'SIGKILL');`, isolated: DROPPED, here: 'logged' },
  'ends at once': { body: 'process.reallyExit(9);', isolated: DROPPED, here: 'logged' },
  'rejects where nobody waits': { body: `Promise.reject(new Error('lost'));`, ...same('200') },
  'throws in a timer': {
    body: `setTimeout(() => { throw new Error('late'); }); return new Promise((resolve) => setTimeout(resolve, 50));`,
    isolated: DROPPED,
    here: { code: 1 },
  },
  'closes descriptors': {
    body: `const { closeSync } = await import('node:fs');
      for (let fd = 3; fd < 64; fd++) try { closeSync(fd); } catch {}
      return new Promise((resolve) => setTimeout(resolve, 50));`,
    isolated: DROPPED,
    here: { code: null, signal: 'SIGABRT' },
  },
  'forges a frame': {
    body: `(await import('node:fs')).writeSync(4, Buffer.from([4, 0, 0, 0, 123, 125, 32, 32])); return new Promise(() => {});`,
    isolated: DROPPED,
    here: 'untried',
  },
  'sends a frame without end': {
    body: `(await import('node:fs')).writeSync(4, Buffer.from([255, 255, 255, 127])); return new Promise(() => {});`,
    isolated: DROPPED,
    here: 'untried',
  },
  'patches what everybody uses': {
    body: `Array.prototype.map = () => []; JSON.stringify = () => '0x'; Buffer.from = () => { throw new Error('no'); };`,
    isolated: '200',
    here: 'untried',
  },
  'reads the key in its environment': {
    body: attempt(`return JSON.stringify(process.env)${KEY_IN};`),
    ...told('no key', 'no key'),
  },
  'reads the key in /proc/self/environ': {
    body: attempt(`return (await import('node:fs')).readFileSync('/proc/self/environ', 'utf8')${KEY_IN};`),
    ...told('ERR_ACCESS_DENIED', 'the key'),
  },
  "reads the key in the service's /proc": {
    body: attempt(
      `return (await import('node:fs')).readFileSync('/proc/' + (process.execArgv.includes('-') ? process.ppid : process.pid) + '/environ', 'utf8')${KEY_IN};`,
    ),
    ...told('ERR_ACCESS_DENIED', 'the key'),
  },
  "opens the service's memory": {
    body: attempt(`(await import('node:fs')).openSync('/proc/' + process.pid + '/mem', 'r'); return 'open';`),
    ...told('ERR_ACCESS_DENIED', 'open'),
  },
  'connects the inspector': {
    body: attempt(`new (await import('node:inspector')).Session().connect(); return 'connected';`),
    ...told('ERR_ACCESS_DENIED', 'connected'),
  },
  "opens the service's inspector": {
    body: attempt(`process._debugProcess(process.ppid); return 'opened';`),
    isolated: '499 an isolated plugin cannot do that',
    here: 'untried',
  },
  'signals the service': {
    body: attempt(`process.kill(process.ppid, 'SIGKILL'); return 'sent';`),
    isolated: '499 an isolated plugin cannot do that',
    here: 'untried',
  },
  'lowers the priority of the service': {
    body: attempt(`(await import('node:os')).setPriority(process.ppid, 19); return 'lower';`),
    isolated: '499 an isolated plugin cannot do that',
    here: 'untried',
  },
  'starts a program': {
    body: attempt(`return String((await import('node:child_process')).spawnSync('true').status);`),
    ...told('ERR_ACCESS_DENIED', '0'),
  },
  'starts a thread': {
    body: attempt(`new (await import('node:worker_threads')).Worker('0', { eval: true }); return 'started';`),
    ...told('ERR_ACCESS_DENIED', 'started'),
  },
  'writes a file': {
    body: attempt(`(await import('node:fs')).writeFileSync('/dev/null', ''); return 'written';`),
    ...told('ERR_ACCESS_DENIED', 'written'),
  },
};

/** A plugin that does what the header `x-act` names. */
export const actor = pluginFile(
  'actor',
  'onHttpRequest({ headers }) { return acts[headers["x-act"]]?.(); }',
  `const acts = { ${Object.entries(pluginActs).map(([name, { body }]) => `${JSON.stringify(name)}: ${/\bawait\b/.test(body) ? 'async ' : ''}() => { ${body} }`)} };`,
);
