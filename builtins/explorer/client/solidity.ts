import { areElementary } from '../../../lib/eth/decode-abi.ts';
import { checksumAddress, isAddress } from '../../../verify/ethereum.ts';
import { requestHashOf } from '../../../verify/index.ts';
import type { Code } from './code.ts';

const RECEIPT = `
        bytes32 asked = SignedData.receiptDigest(ENDPOINT_ID, REQUEST_HASH, keccak256(data), timestamp);
        require(SignedData.recoverReceipt(asked, receiptSignature) == NODE, "answer to another request");`;

/** The types that a contract decodes: of raw JSON only the hash is signed. */
function typesOf({ endpoint: { encoding }, asked: { types = '' } }: Code): string[] {
  if (encoding === undefined) return ['bytes32'];
  return areElementary(types) ? types.split(',').map((type) => type.trim()) : ['bytes'];
}

function commentOf({ endpoint: { encoding, parameters, receipt } }: Code): string {
  const raw =
    encoding === undefined ? '/// Returns keccak256 of the canonical JSON of rawData, which is what is signed.\n' : '';
  const open = receipt === undefined && parameters.length > 0;
  return `${raw}${open ? '/// The signature covers no parameters: whoever asks chooses them.\n' : ''}`;
}

/** A contract that accepts the answers of this endpoint by this signer, while they are new. */
export function solidityOf(code: Code): string {
  const { endpoint, asked, node } = code;
  const types = typesOf(code);
  const returned = types.map((type) => (/^(?:string|bytes)$/.test(type) ? `${type} memory` : type)).join(', ');
  const { parameters } = asked;
  const hash = parameters && `\n    bytes32 constant REQUEST_HASH = ${requestHashOf(parameters)};`;
  const extra = parameters ? ', bytes calldata receiptSignature' : '';
  const address = isAddress(node) ? checksumAddress(node) : 'address(0)';
  return `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "signed-data-proxy-contracts/SignedData.sol";

${commentOf(code)}contract Reader {
    address constant NODE = ${address};
    bytes32 constant ENDPOINT_ID = ${endpoint.id};${hash ?? ''}
    uint256 constant MAX_AGE = 10 minutes;

    function read(uint256 timestamp, bytes calldata data, bytes calldata signature${extra})
        external
        view
        returns (${returned})
    {
        bytes32 digest = SignedData.digest(ENDPOINT_ID, timestamp, data);
        require(SignedData.recover(digest, signature) == NODE, "another signer");${parameters ? RECEIPT : ''}
        require(timestamp <= block.timestamp + 1 minutes && block.timestamp <= timestamp + MAX_AGE, "too old");
        return abi.decode(data, (${types.join(', ')}));
    }
}
`;
}
