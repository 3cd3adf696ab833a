import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ethers } from 'ethers';
import { loadConfig } from '../config/index.ts';
import { listen, urlOf } from '../lib/http/listen.ts';
import { errorText } from '../lib/text.ts';
import { silentLog } from '../plugins-sdk/log.ts';
import { definitions, type Service, startService } from '../service/index.ts';
import { verifyResponse } from '../verify/index.ts';

/** The answer of the embedded upstream; its number has more digits than a double. */
const QUOTE = '{"symbol":"ETHUSD","price":2064.012345678901234567,"updated":"just now"}';

const say = (line: string) => process.stdout.write(`${line}\n`);

function configFor(upstream: string): string {
  return `version: '1.0'
server: { port: 0 }
settings: { explorer: true }
apis:
  - name: demo
    url: ${upstream}
    auth: { type: free }
    endpoints:
      - name: encoded
        description: The price of one asset, with 18 decimals
        path: /quote
        parameters: [{ name: symbol, default: ETHUSD }]
        encoding: { type: int256, path: $.price, times: '1e18' }
      - name: raw
        description: The whole quote, as JSON
        path: /quote
        parameters: [{ name: symbol, default: ETHUSD }]
`;
}

/** Asks an endpoint, and checks the answer as a consumer would. Returns the data that was signed. */
async function ask({ url, signer }: Service, id: string, title: string): Promise<string> {
  const response = await fetch(`${url}/endpoints/${id}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"parameters":{"symbol":"ETHUSD"}}',
  });
  const body: unknown = await response.json();
  if (!response.ok) throw new Error(`the service answered ${response.status}: ${JSON.stringify(body)}`);
  say(`\n${title}\n${JSON.stringify(body, undefined, 2)}`);
  const result = verifyResponse(body, { node: signer.address });
  if (!result.ok) throw new Error(result.message);
  say(`  digest     keccak256(endpointId ‖ timestamp ‖ data) = ${result.digest}`);
  say(`  recovered  ${result.signer}`);
  say('  verified   ✓ the signer is the node that was pinned');
  return result.signedData;
}

async function demo(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'signed-data-proxy-demo-'));
  const upstream = createServer((_, response) => response.setHeader('Content-Type', 'application/json').end(QUOTE));
  await listen(upstream, { port: 0, host: '127.0.0.1' });
  const file = join(folder, 'config.yaml');
  await writeFile(file, configFor(urlOf(upstream)));
  const { endpoints } = await loadConfig({ file, env: {}, builtins: definitions() });
  const [id = '', rawId = ''] = endpoints.map((endpoint) => endpoint.id);
  const env = { SERVICE_PRIVATE_KEY: ethers.Wallet.createRandom().privateKey };
  const service = await startService({ file, env, log: { ...silentLog, warn: say, error: say } });
  say(`The service listens on ${service.url} and signs as ${service.signer.address} (a throw-away key).`);
  say(`Its upstream answers ${QUOTE}`);
  const data = await ask(service, id, '1. An encoded answer: one int256, the price times 1e18');
  const [price] = ethers.AbiCoder.defaultAbiCoder().decode(['int256'], data);
  say(`  value      ${price} = ${ethers.formatEther(price)} (every digit that the upstream sent)`);
  await ask(service, rawId, '2. A raw answer: the JSON is signed, by the hash of its canonical text');
  say(
    '  digits     fewer than the upstream sent: a raw answer carries numbers as doubles, an encoding signs every digit',
  );
  say('\nAsk it yourself (Ctrl-C ends the demo):\n');
  say(`  curl -s -X POST ${service.url}/endpoints/${id} -H 'Content-Type: application/json' -d '{}'\n`);
  say(`Or call it and check its signatures in a browser: ${service.url}/\n`);
  const stop = async () => {
    await service.stop();
    upstream.close();
    upstream.closeAllConnections();
    await rm(folder, { recursive: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void stop());
}

demo().catch((error: unknown) => {
  process.stderr.write(`error: ${errorText(error)}\n`);
  process.exit(1);
});
