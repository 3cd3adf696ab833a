import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { dataDigest, personalDigest } from '../../lib/eth/eip191.ts';
import { type Hex, keccak256, toBytes, toHex } from '../../lib/eth/hex.ts';
import { personalStatement } from '../../lib/eth/statements.ts';
import { canonicalJson } from '../../lib/json/canonical-json.ts';
import { createSigner } from '../../plugins-sdk/signing/local-key.ts';
import { loadObject } from '../support/config.ts';
import { receiptVectors } from './receipts.ts';

/**
 * Writes the test vectors beside this file, with the service's own code: `npx tsx test/vectors/generate.ts`, then
 * `npm run format` (those of receipts without it: see receipts.ts). They are for implementers in other languages; vectors.test.ts holds them against other libraries.
 */

export interface CanonicalVector {
  readonly note: string;
  /** JSON text as an upstream could send it. */
  readonly json: string;
  readonly canonical: string;
  /** keccak256 of the canonical text in UTF-8. */
  readonly hash: string;
}

export interface AnswerVector {
  readonly note: string;
  /** The body as the service sends it. */
  readonly response: Readonly<Record<string, unknown>>;
  /** The `bytes data` of the digest. */
  readonly signedData: string;
  /** keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes signedData)). */
  readonly digest: string;
  /** keccak256("\x19Ethereum Signed Message:\n32" ‖ digest), which the curve signs. */
  readonly personalDigest: string;
}

export interface RefusedVector {
  readonly note: string;
  readonly reason: string;
  readonly response: Readonly<Record<string, unknown>>;
}

export interface EndpointVector {
  readonly note: string;
  /** What the config file says of the API, with one endpoint. */
  readonly api: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** keccak256 of the text in UTF-8. */
  readonly endpointId: string;
}

export interface Vectors {
  readonly 'canonical-json.json': readonly CanonicalVector[];
  readonly 'signed-answers.json': {
    readonly privateKey: string;
    readonly node: string;
    readonly accepted: readonly AnswerVector[];
    readonly refused: readonly RefusedVector[];
  };
  readonly 'endpoint-ids.json': readonly EndpointVector[];
}

/** Nobody's: its digits say so. */
const PRIVATE_KEY = `0x${'11'.repeat(32)}`;
const ENDPOINT_ID: Hex = `0x${'a1'.repeat(32)}`;
const TIMESTAMP = 1_767_225_600;
const CURVE_ORDER = 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n;

const documents: readonly (readonly [note: string, json: string])[] = [
  ['no white space', ' { "a" : [ 1 , 2 ] } '],
  ['keys are sorted at every level', '{"b":1,"a":{"d":[{"z":0,"y":0}],"c":null}}'],
  ['arrays keep their order', '[3,1,2]'],
  ['by UTF-16 code units: U+1F600 comes before U+FB33', '{"\\ufb33":1,"\\ud83d\\ude00":2,"é":3,"z":4,"Z":5}'],
  ['keys that look like numbers are sorted as text', '{"10":1,"9":2,"1":3}'],
  ['an empty key comes first', '{"a":1,"":2}'],
  ['of duplicate keys the last wins', '{"a":1,"a":2}'],
  ['a key that is special in JavaScript', '{"b":0,"__proto__":{"x":1}}'],
  ['numbers as ECMAScript writes them', '[1.0,-0,1e3,1E-7,0.000001,1e21,1e20,4.35,5e-324,1.7976931348623157e308]'],
  ['numbers beyond 2^53 are rounded to a double', '[9007199254740993,123456789012345678901234567890]'],
  ['only what must be is escaped', '"\\u0000\\u001f\\u007f\\u2028\\"\\\\\\/\\b\\f\\n\\r\\t\\u00fc"'],
  ['a lone surrogate is escaped', '"\\ud800"'],
  ['null', 'null'],
  ['true', 'true'],
  ['an empty array', '[]'],
  ['an empty object', '{}'],
  ['text', '"text"'],
];

const encoded: readonly (readonly [note: string, data: Hex, timestamp?: number])[] = [
  ['int256: 1.5e18', `0x${1_500_000_000_000_000_000n.toString(16).padStart(64, '0')}`],
  ['int256: -1', `0x${'f'.repeat(64)}`],
  ['no bytes', '0x'],
  ['33 bytes', `0x${'5a'.repeat(33)}`],
  ['the first second', '0x01', 0],
  ['a timestamp beyond 32 bits', '0x01', 4_294_967_296],
  ['the last timestamp', '0x01', Number.MAX_SAFE_INTEGER],
];

const raw: readonly (readonly [note: string, json: string])[] = [
  ['raw: null', 'null'],
  ['raw: an empty object', '{}'],
  ['raw: keys out of order', '{"price":3000.5,"asset":"ETH"}'],
  ['raw: text beyond ASCII', '{"ü":["\\ud83d\\ude00"]}'],
];

const endpoint = { name: 'price', path: '/price' };
const apis: readonly (readonly [note: string, api: Readonly<Record<string, unknown>>])[] = [
  ['least', { url: 'https://api.example.com', endpoints: [endpoint] }],
  ['a slash at the end of the URL does not count', { url: 'https://api.example.com/', endpoints: [endpoint] }],
  [
    'an encoding',
    {
      url: 'https://api.example.com/v1',
      endpoints: [{ ...endpoint, encoding: { type: 'int256', path: '$.price', times: '1e18' } }],
    },
  ],
  [
    'wildcards',
    { url: 'https://api.example.com/v1', endpoints: [{ ...endpoint, encoding: { type: '*', path: '*' } }] },
  ],
  [
    'an encrypted value: the contract in lower case',
    {
      url: 'https://api.example.com/v1',
      endpoints: [
        {
          ...endpoint,
          encoding: { type: 'uint256', path: '$.price' },
          encrypt: { type: 'euint64', contract: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
        },
      ],
    },
  ],
  [
    'parameters, sorted by name and place; a secret one without its value',
    {
      url: 'https://api.example.com',
      endpoints: [
        {
          name: 'search',
          path: '/{coin}/search',
          method: 'POST',
          parameters: [
            { name: 'key', in: 'header', fixed: 'not shown', secret: true },
            { name: 'coin', in: 'path', required: true },
            { name: 'limit', in: 'query', default: 10 },
            { name: 'limit', in: 'body', fixed: true },
            { name: 'Zone', in: 'cookie', fixed: 'ü' },
          ],
        },
      ],
    },
  ],
];

export async function vectors(): Promise<Vectors> {
  const { address } = createSigner(PRIVATE_KEY);
  return {
    'canonical-json.json': documents.map(([note, json]) => canonicalVector(note, json)),
    'signed-answers.json': {
      privateKey: PRIVATE_KEY,
      node: address,
      accepted: acceptedAnswers(),
      refused: refusedAnswers(),
    },
    'endpoint-ids.json': await Promise.all(apis.map(([note, api]) => endpointVector(note, api))),
  };
}

function canonicalVector(note: string, json: string): CanonicalVector {
  const canonical = canonicalJson(JSON.parse(json));
  return { note, json, canonical, hash: hashOf(canonical) };
}

function acceptedAnswers(): AnswerVector[] {
  return [
    ...encoded.map(([note, data, timestamp = TIMESTAMP]) => answerVector(note, { data }, data, timestamp)),
    ...raw.map(([note, json]) => {
      const rawData: unknown = JSON.parse(json);
      return answerVector(note, { rawData }, hashOf(canonicalJson(rawData)), TIMESTAMP);
    }),
  ];
}

function answerVector(note: string, content: object, signedData: Hex, timestamp: number): AnswerVector {
  const { address, sign } = createSigner(PRIVATE_KEY);
  const digest = dataDigest(ENDPOINT_ID, timestamp, toBytes(signedData));
  const response = {
    node: address,
    endpointId: ENDPOINT_ID,
    timestamp,
    ...content,
    signature: sign(personalStatement(digest)),
  };
  return { note, response, signedData, digest: toHex(digest), personalDigest: toHex(personalDigest(digest)) };
}

function refusedAnswers(): RefusedVector[] {
  const { response } = answerVector('', { data: '0x1234' }, '0x1234', TIMESTAMP);
  const { data: _, ...withoutData } = response;
  const signature = String(response.signature);
  const [rs, v] = [signature.slice(0, 130), signature.slice(130)];
  const otherV = v === '1b' ? '1c' : '1b';
  const highS = CURVE_ORDER - BigInt(`0x${rs.slice(66)}`);
  const zero = '0'.repeat(64);
  const cases: [string, string, object][] = [
    ['data was changed', 'signer', { ...response, data: '0x1235' }],
    ['data was lengthened', 'signer', { ...response, data: '0x123400' }],
    ['the timestamp was changed', 'signer', { ...response, timestamp: TIMESTAMP + 1 }],
    ['the endpoint ID was changed', 'signer', { ...response, endpointId: `0x${'a2'.repeat(32)}` }],
    ['the node was changed', 'signer', { ...response, node: `0x${'22'.repeat(20)}` }],
    ['the other v', 'signer', { ...response, signature: rs + otherV }],
    ['n - s with the other v', 'signature', { ...response, signature: rs.slice(0, 66) + hex64(highS) + otherV }],
    ['a bare recovery id', 'signature', { ...response, signature: `${rs}0${Number(v === '1c')}` }],
    [
      'r is zero, the node too',
      'signature',
      { ...response, node: `0x${'0'.repeat(40)}`, signature: `0x${zero}${rs.slice(66)}${v}` },
    ],
    ['s is zero', 'signature', { ...response, signature: `${rs.slice(0, 66)}${zero}${v}` }],
    ['64 bytes', 'malformed', { ...response, signature: rs }],
    ['66 bytes', 'malformed', { ...response, signature: `${signature}00` }],
    ['data and rawData', 'malformed', { ...response, rawData: null }],
    ['neither data nor rawData', 'malformed', withoutData],
    ['half a byte of data', 'malformed', { ...response, data: '0x123' }],
    ['a timestamp in text', 'malformed', { ...response, timestamp: String(TIMESTAMP) }],
    ['a timestamp with a fraction', 'malformed', { ...response, timestamp: TIMESTAMP + 0.5 }],
    ['a short endpoint ID', 'malformed', { ...response, endpointId: '0xa1' }],
    ['no signature', 'malformed', { ...response, signature: '' }],
  ];
  return cases.map(([note, reason, changed]) => ({ note, reason, response: { ...changed } }));
}

async function endpointVector(note: string, api: Readonly<Record<string, unknown>>): Promise<EndpointVector> {
  const fhe = { network: 'sepolia', rpcUrl: 'https://rpc.example.com', verifier: `0x${'33'.repeat(20)}` };
  const config = { settings: { fhe }, apis: [{ name: 'api', auth: { type: 'free' }, ...api }] };
  const { endpoints, explained } = await loadObject(config);
  return { note, api, text: explained[0]?.text ?? '', endpointId: endpoints[0]?.id ?? '' };
}

function hashOf(text: string): Hex {
  return toHex(keccak256(Buffer.from(text)));
}

function hex64(value: bigint): string {
  return value.toString(16).padStart(64, '0');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, content] of Object.entries({ ...(await vectors()), 'receipts.json': await receiptVectors() })) {
    await writeFile(new URL(name, import.meta.url), `${JSON.stringify(content, undefined, 2)}\n`);
  }
}
