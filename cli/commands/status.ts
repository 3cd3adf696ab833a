import { Document, isSeq, visit } from 'yaml';
import { readSettings } from '../../config/index.ts';
import { RequestFailure } from '../../lib/http/client/index.ts';
import { isRecord, jsonIn } from '../../lib/json/value.ts';
import { readEnvironment, userPath } from '../../service/surroundings.ts';
import { print } from '../../service/terminal.ts';
import { escapeUnprintable } from '../../service/text.ts';
import { type Given, requireWith, UsageError } from '../arguments.ts';
import { ANSWER_TIMEOUT_MS, httpGet } from '../http-get.ts';
import { serviceUrl } from '../identity/health.ts';
import { printJson } from '../json-output.ts';

/** The most bytes of the answer; a hundred workers show less. */
const MAX_BYTES = 16 * 1024 * 1024;
const EXAMPLE_PORT = 9464;
/** Addresses that can be listened on but not asked, and the addresses to ask instead. */
const REACHABLE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Prints the status of each process of a running service. */
export async function printStatus(given: Given): Promise<void> {
  const processes = await shownAt(await statusUrl(given));
  if (given.flag('json')) await printJson({ ok: true, processes });
  else await print(processes.map(yamlOf).join('---\n'));
}

/** Returns the URL of the status. @throws UsageError unless exactly one option is given, Error for a config without a port. */
async function statusUrl(given: Given): Promise<string> {
  const [url, config] = [given.optional('url'), given.optional('config')];
  if ((url === undefined) === (config === undefined))
    throw new UsageError('one of -c, --config <file> and --url <url> must be given: each says where the metrics are');
  requireWith(given, 'config', ['env']);
  // The log has the URL of the metrics.
  if (url !== undefined) return `${serviceUrl(url).replace(/\/metrics$/, '')}/status`;
  const file = userPath(config ?? '');
  const { metrics } = await readSettings(file, await readEnvironment(given.optional('env')));
  const { port, host = '127.0.0.1' } = isRecord(metrics) ? metrics : {};
  if (!/^\d+$/.test(String(port)))
    throw new Error(
      `${file}: settings.metrics${isRecord(metrics) ? '.port is no port' : ' is missing'}, and a service shows its status on the port of its metrics: add "metrics: { port: ${EXAMPLE_PORT} }" to settings, and restart the service`,
    );
  if (Number(port) === 0)
    throw new Error(
      `${file}: settings.metrics.port is 0, and only the log of the service says which port it took: give it as --url`,
    );
  const address = REACHABLE[String(host)] ?? String(host);
  return `http://${address.includes(':') ? `[${address}]` : address}:${String(port)}/status`;
}

async function shownAt(url: string): Promise<readonly unknown[]> {
  try {
    const { status, body } = await httpGet(url, MAX_BYTES);
    const { processes, error: why }: Readonly<Record<string, unknown>> = Object(jsonIn(body.toString()));
    if (status === 200 && Array.isArray(processes)) return processes;
    if (status === 403 && typeof why === 'string') throw new Error(`${url}: ${why}`);
    throw new Error(`${url}: answers with status ${status} and no status: is it the port of a service's metrics?`);
  } catch (error) {
    if (!(error instanceof RequestFailure)) throw error;
    throw new Error(`${url}: ${cureOf(error)}`);
  }
}

function cureOf({ kind, phase, message }: RequestFailure): string {
  if (kind === 'timeout')
    return `no answer within ${ANSWER_TIMEOUT_MS} ms: the service is blocked, or something else listens there`;
  if (phase === 'answer') return message;
  return 'nothing listens there: start the service, restart it if settings.metrics is newer than its start, or give --url';
}

/** Returns YAML with a line for each row of a list, and without characters that control a terminal. */
function yamlOf(shown: unknown): string {
  const document = new Document(shown);
  visit(document, {
    Map: (_, node, path) => {
      node.flow = isSeq(path.at(-1));
    },
  });
  const lines = document.toString({ lineWidth: 0 }).split('\n');
  return lines.map(escapeUnprintable).join('\n');
}
