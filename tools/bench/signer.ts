import { createServer } from 'node:http';
import { toBytes } from '../../lib/eth/hex.ts';
import { listen, urlOf } from '../../lib/http/listen.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import { SIGNER_KEY } from './signer-key.ts';

/** A wallet that does as little as one can: `personal_sign` with the native library. */
const { signDigest } = createSigner(SIGNER_KEY);
const server = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { id, params } = JSON.parse(Buffer.concat(chunks).toString());
  const body = JSON.stringify({ jsonrpc: '2.0', id, result: signDigest(toBytes(params[0])) });
  response.setHeader('Content-Type', 'application/json').end(body);
});
await listen(server, { port: 0, host: '127.0.0.1' });
console.log(`listening on ${urlOf(server)}`);
