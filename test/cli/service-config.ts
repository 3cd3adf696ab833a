import { keccak256, toUtf8Bytes } from 'ethers';

/** A key that is public knowledge (the first account of every local test chain), and its address. */
export const KEY = '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80';
export const ADDRESS = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';

/** The mnemonic of that account. */
export const MNEMONIC = 'test test test test test test test test test test test junk';

/** A config of one encoded and one raw endpoint, on a free port. */
export function configText(url = 'https://api.example.com', more = ''): string {
  return `version: '1.0'
server: { port: 0 }
${more}
apis:
  - name: prices
    url: ${url}
    auth: { type: free }
    endpoints:
      - name: eth
        path: /eth
        encoding: { type: int256, path: $.price, times: '1e18' }
      - name: all
        path: /all
        parameters: [{ name: q, required: true }]
        receipt: false
`;
}

/** The hashed texts of that config's endpoints, written by hand from the decisions. */
export function specifications(url = 'https://api.example.com') {
  return {
    eth: `{"encoding":{"path":"$.price","times":"1e18","type":"int256"},"encrypt":null,"method":"GET","parameters":[],"path":"/eth","url":"${url}"}`,
    all: `{"encoding":null,"encrypt":null,"method":"GET","parameters":[{"in":"query","name":"q","required":true,"secret":false}],"path":"/all","url":"${url}"}`,
  };
}

export function endpointId(specification: string): string {
  return keccak256(toUtf8Bytes(specification));
}
