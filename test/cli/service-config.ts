import { keccak256, toUtf8Bytes } from 'ethers';

/** A key made for these tests, of which nobody is warned, and its address. */
export const KEY = '0x87501435a82840812005bea8353be8889c4bb60dbd1703884e2f6bf0913167ca';
export const ADDRESS = '0x0deB2889754BBd46C50aD7513Ea4B9860C1fA5b0';

/** The mnemonic of that account. */
export const MNEMONIC = 'convince surge half over tenant metal outer wheel north indoor occur art';

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
