import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { JSON_HEADERS, postText } from '../support/http.ts';
import { upstreamFor } from '../support/upstream.ts';
import { awaited } from '../support/wait.ts';
import { COUNTED, folderWith, launchCli, PACKAGE_ROOT, type Running, type RunOptions } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';

/** The time of a log line. */
export const TIME = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z';

/** The last line that the service writes when it starts. */
export const lastLine = new RegExp(`prices/all ${endpointId(specifications().all)}\\n`);

/** Starts the service with `c.yaml` of a folder with these files. */
export async function startIn(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  options: RunOptions = {},
): Promise<Running> {
  const cwd = await folderWith(t, files);
  const all = { ...COUNTED, SERVICE_PRIVATE_KEY: KEY, ...env };
  return launchCli(t, ['start', '-c', 'c.yaml'], { ...options, cwd, env: all });
}

/** Where it listens, once it does. */
export async function urlOf({ output }: Running): Promise<string> {
  return (await output(/listening on (http:\/\/127\.0\.0\.1:\d+)\b/))[1] ?? '';
}

/** A config with a plugin in a file of its own, whose source is given. */
export function withPlugin(source: string, url?: string): Record<string, string> {
  return { 'c.yaml': configText(url, 'settings: { plugins: [{ source: ./p.mjs }] }'), 'p.mjs': source };
}

/** A plugin that does something, in the fourth line of its file, when it gets a signal. */
export function onSignal(body: string): Record<string, string> {
  return withPlugin(`export default { name: 'p', hooks: { onResponseSent() {} } };
process.on('SIGUSR2', leave);
function leave() {
${body}
}
`);
}

/** Words for node that run a program which logs to its stdout through the real log. */
export function loggingProgram(body: string): string[] {
  const program = `
    const { createLog } = await import(${JSON.stringify(join(PACKAGE_ROOT, 'service/log.ts'))});
    const log = createLog({ level: 'info', format: 'json', colour: false });
    ${body}`;
  return ['--import', import.meta.resolve('tsx'), '--input-type=module', '--eval', program];
}

/** POSTs to an endpoint, without parameters unless a body has some. */
export function postTo(url: string | undefined, id: string | undefined, headers = {}, body = '{}'): Promise<Response> {
  return postText(`${url}/endpoints/${id}`, body, { ...JSON_HEADERS, ...headers });
}

/** An upstream that lets the test answer its first request. */
export async function heldUpstream(t: TestContext): Promise<{ url: string; arrival: PromiseLike<ServerResponse> }> {
  const arrived = new EventEmitter();
  const upstream = await upstreamFor(t, { '*': (_, response) => void arrived.emit('request', response) });
  const arrival = once(arrived, 'request').then(([response]): ServerResponse => response);
  return { url: upstream.url, arrival: awaited(arrival, 'a call of the upstream') };
}
