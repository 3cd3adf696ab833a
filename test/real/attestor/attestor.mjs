import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import WebSocket from 'ws';

const require = createRequire(import.meta.url);

/** Public knowledge: accounts of every local test chain. */
const ATTESTOR_KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
const OWNER_KEY = '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d';

/**
 * Starts a real attestor, which trusts the CA beside the usual ones.
 * @returns its address for WebSockets, and the library.
 */
export async function startAttestor(port, ca) {
  // Read when the library is loaded.
  Object.assign(process.env, { PRIVATE_KEY: ATTESTOR_KEY, DISABLE_BGP_CHECKS: '1' });
  process.env.LOG_LEVEL ??= 'fatal';
  globalThis.WebSocket = WebSocket;
  globalThis.TLS_ADDITIONAL_ROOT_CA_LIST ??= [];
  globalThis.TLS_ADDITIONAL_ROOT_CA_LIST.push(ca);
  const core = require('@reclaimprotocol/attestor-core');
  const { createServer: createAttestor } = require('@reclaimprotocol/attestor-core/lib/server');
  const server = await createAttestor(port);
  return { url: `ws://127.0.0.1:${port}/ws`, core, server };
}

/**
 * Starts the gateway: it turns a POST of `{url, method, headers, body, responseMatches}` into a claim of the attestor.
 * @returns its address, and how long each claim took in milliseconds.
 */
export async function startGateway({ url: attestor, core }) {
  const times = [];
  const answer = async ({ url, method, headers, body, responseMatches }) => {
    const started = performance.now();
    const { claim, signatures, error } = await core.createClaimOnAttestor({
      name: 'http',
      params: { url, method, body: body ?? '', responseMatches, responseRedactions: [] },
      secretParams: { headers },
      ownerPrivateKey: OWNER_KEY,
      client: { url: attestor },
      zkEngine: 'gnark',
      maxRetries: 1,
    });
    if (!claim || !signatures) throw new Error(error?.message ?? 'no claim');
    times.push(performance.now() - started);
    const claimSignature = `0x${Buffer.from(signatures.claimSignature).toString('hex')}`;
    return { claim, signatures: { attestorAddress: signatures.attestorAddress, claimSignature } };
  };
  const server = createServer(async (req, res) => {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    try {
      const proof = await answer(JSON.parse(Buffer.concat(chunks).toString('utf8')));
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(proof));
    } catch (error) {
      console.log(`  gateway: ${error instanceof Error ? error.message : error}`);
      res.writeHead(502).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/prove`, times, server };
}
