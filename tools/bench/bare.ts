import { createServer, type IncomingMessage } from 'node:http';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { answers, isAllowed, log } from './answers.ts';

/** The limit: {@link answers} on nothing but node:http, with a log line. */

function bodyOf(request: IncomingMessage): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    request.on('end', () => resolve(JSON.parse(text))).on('error', reject);
  });
}

async function answerTo(request: IncomingMessage): Promise<string | undefined> {
  const answer = isAllowed(request.headers) ? answers[request.url ?? ''] : undefined;
  const found = answer?.(await bodyOf(request));
  return typeof found === 'object' ? JSON.stringify(await found) : found;
}

const server = createServer(async (request, response) => {
  const started = performance.now();
  const text = await answerTo(request);
  const status = text === undefined ? 401 : 200;
  const length = Buffer.byteLength(text ?? '');
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': length }).end(text);
  log.info({ path: request.url, status, milliseconds: performance.now() - started });
});
await listen(server, { port: 0, host: '127.0.0.1' });
process.stdout.write(`listening on ${urlOf(server)}\n`);
