import { jcs } from '../lib/json/canonical-json.ts';
import { fieldOf, type Statement, type Voucher } from './answer.ts';
import { type Hex, hashOf, hashOfText, isHex, isSame, recoverFrom, wordOf } from './ethereum.ts';
import { malformed, Refusal } from './refusal.ts';

/**
 * Returns the request hash of a receipt: keccak256 of the UTF-8 text of the canonical JSON (RFC 8785) of `{"parameters": …}`.
 * Computed once, it can be pinned, also in a contract.
 *
 * @param parameters all that the endpoint's receipts cover: its declared parameters, except fixed and secret ones. They include
 * the defaults of those that the request leaves out, and `_type`, `_path` and `_times` where the client chooses these.
 * A number and its text are not the same.
 * @throws TypeError if `parameters` is no object, CanonicalJsonError if it holds values that are not JSON.
 */
export function requestHashOf(parameters: Readonly<Record<string, unknown>>): Hex {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw new TypeError('parameters must be an object');
  }
  return hashOfText(jcs({ parameters }));
}

const DOMAIN = ['EIP712Domain(string name,string version)', 'Signed Data Receipt', '1'];
const TYPE = 'Receipt(bytes32 endpointId,bytes32 requestHash,bytes32 dataHash,uint256 timestamp)';

/** Returns the digest that the signer of a receipt signs (EIP-712). */
function digestOf({ endpointId, dataHash, timestamp }: Statement, requestHash: Hex): Hex {
  const struct = hashOf(hashOfText(TYPE), endpointId, requestHash, dataHash, wordOf(timestamp));
  return hashOf('0x1901', hashOf(...DOMAIN.map(hashOfText)), struct);
}

/** The fields of a valid receipt. */
export interface CheckedReceipt {
  readonly requestHash: Hex;
  readonly receiptSignature: Hex;
}

/**
 * Checks that the signer of an answer also signed a receipt of it, for the expected request.
 * @param receipt the answer's field of that name, unchecked.
 * @param wanted the expected request hash.
 * @throws Refusal
 */
export function checkReceipt(
  receipt: unknown,
  { node, receiptSignature }: Voucher,
  statement: Statement,
  wanted: Hex,
): CheckedReceipt {
  if (receipt === undefined)
    throw new Refusal('receipt-missing', 'the response has no receipt that tells what was asked');
  const requestHash = fieldOf(receipt, 'requestHash');
  const dataHash = fieldOf(receipt, 'dataHash');
  if (!isHex(requestHash, 32) || !isHex(dataHash, 32)) {
    throw malformed('receipt must hold requestHash and dataHash: 0x and 64 hex digits each');
  }
  if (receiptSignature === undefined) throw new Refusal('receipt-missing', `the response has no receipt by ${node}`);
  if (!isHex(receiptSignature, 65)) {
    throw malformed('the signature of the receipt must be 65 bytes: 0x and 130 hex digits');
  }
  if (!isSame(dataHash, statement.dataHash)) throw new Refusal('receipt', 'the receipt is of other data');
  const recovered = recoverFrom(digestOf(statement, requestHash), receiptSignature);
  if ('problem' in recovered) {
    throw new Refusal('receipt', `the signature of the receipt is not valid: ${recovered.problem}`);
  }
  if (!isSame(recovered.address, node)) {
    throw new Refusal('receipt', `the receipt is not by ${node}, or not of this response, or it was changed`);
  }
  if (!isSame(requestHash, wanted)) {
    throw new Refusal('request', `the response is of the request ${requestHash}, not of ${wanted}`);
  }
  return { requestHash: wanted, receiptSignature };
}
