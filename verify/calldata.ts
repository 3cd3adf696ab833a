import { type Hex, wordOf } from './ethereum.ts';

/** The fields of an answer for `SignedDataQuorum`, as `ask` returns them. `verifyResponse` has `data` as `signedData`. */
export interface AnswerOnChain {
  readonly signer: string;
  readonly endpointId: string;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly data: string;
  readonly signature: string;
  readonly receiptSignature?: string | undefined;
}

/** The selector of `median((address,bytes32,uint256,bytes,bytes,bytes)[])`. */
const MEDIAN = '0x9421543f';
const WORD_BYTES = 32;
/** Words of an answer before its `bytes`: three values, and three offsets. */
const HEAD_WORDS = 6;

/** Returns the calldata of `SignedDataQuorum.median` for these answers, in any order. */
export function calldataFor(answers: readonly AnswerOnChain[]): Hex {
  const tuples = answers.map(tupleOf);
  const places = placesOf(tuples, tuples.length);
  return `${MEDIAN}${[word(WORD_BYTES), word(tuples.length), ...places, ...tuples].join('')}`;
}

function tupleOf(answer: AnswerOnChain): string {
  const { signer, endpointId, timestamp, data, signature, receiptSignature = '0x' } = answer;
  const bytes = [data, signature, receiptSignature].map((hex) => {
    const digits = hex.slice(2);
    const room = Math.ceil(digits.length / 2 / WORD_BYTES) * 2 * WORD_BYTES;
    return word(digits.length / 2) + digits.padEnd(room, '0');
  });
  const values = [signer.slice(2).padStart(2 * WORD_BYTES, '0'), endpointId.slice(2), word(timestamp)];
  return [...values, ...placesOf(bytes, HEAD_WORDS), ...bytes].join('').toLowerCase();
}

/** Returns the offset of each part. The first part follows after so many words. */
function placesOf(parts: readonly string[], words: number): string[] {
  let place = words * WORD_BYTES;
  return parts.map((part) => {
    const begins = word(place);
    place += part.length / 2;
    return begins;
  });
}

function word(value: number): string {
  return wordOf(value).slice(2);
}
