/**
 * Adds the signer type `remote`: your own service signs the answers, so that the proxy holds no key. For an answer it POSTs
 *
 * ```json
 * {"address":"0x…","digest":"0x…"}
 * ```
 *
 * and gets `{"signature":"0x…"}`, the EIP-191 personal signature of the 32 bytes of the digest. In ethers,
 * `wallet.signMessage(getBytes(digest))` makes it. For a receipt it POSTs `{"address":"0x…","typedData":{…}}`, the JSON of
 * `eth_signTypedData_v4`. The proxy bounds the time of a request and how many run at once. It checks that signatures are by
 * `address`.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./remote-signer.ts
 *   signer:
 *     type: remote
 *     url: https://signer.internal/sign
 *     address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266'
 *     headers: { Authorization: 'Bearer ${SIGNER_TOKEN}' }
 *     timeout: 2s
 * ```
 */

import { createHttpClient, definePlugin, toHex } from 'signed-data-proxy/plugins-sdk';
import { httpTarget, LONGEST_TIMER } from 'signed-data-proxy/plugins-sdk/config';
import {
  type Address,
  checkHttpSigners,
  checksumAddress,
  type HttpSignerConfig,
  HttpSignerSchema,
  normalizedSignature,
  type OpenSigner,
  type Statement,
  signerType,
} from 'signed-data-proxy/plugins-sdk/signing';

function question(address: Address, statement: Statement): string {
  if (statement.kind === 'personal') return JSON.stringify({ address, digest: toHex(statement.digest) });
  return JSON.stringify({ address, typedData: statement.data() });
}

function open(config: HttpSignerConfig): OpenSigner {
  const address = checksumAddress(config.address);
  const target = httpTarget(config.url, config.headers);
  const client = createHttpClient();
  const headers = { 'content-type': 'application/json', ...target.headers };
  return {
    address,
    async sign(statement, signal) {
      const body = question(address, statement);
      // The proxy aborts the request earlier, after the `timeout` of `settings.signer`.
      const limits = { timeout: LONGEST_TIMER, maxBytes: 4096, signal };
      const answer = await client.request({ method: 'POST', url: target.url, headers, body, ...limits });
      if (answer.status !== 200) throw new Error(`HTTP status ${answer.status}`);
      return normalizedSignature(Object(JSON.parse(answer.body.toString())).signature);
    },
    close: () => client.close(),
  };
}

export default definePlugin({
  name: 'remote-signer',
  signers: { remote: signerType({ schema: HttpSignerSchema, open }) },
  check: checkHttpSigners('remote'),
  setup: () => ({}),
});
