// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "./SignedData.sol";

/// @title Checks answers by the settings of a contract
/// @notice The checks that {SignedDataQuorum} and {SignedDataReader} share. It has no state and no external functions.
abstract contract SignedDataAnswers {
    /// @notice The fields of an answer as the service returns it.
    /// @param receiptSignature The field `signature` of its `receipt`; empty if {Settings.requestHash} is zero.
    struct Answer {
        address node;
        bytes32 endpointId;
        uint256 timestamp;
        bytes data;
        bytes signature;
        bytes receiptSignature;
    }

    /// @notice The requirements for answers to count.
    /// @param owner The account that may propose other settings. With the zero address nobody ever can.
    /// @param endpointId The endpoint that answers must be of.
    /// @param requestHash The request that each answer must have a receipt of. An answer with `rawData` never passes this check.
    /// With zero no receipts are needed, and the endpoint must be one whose answer no requester can steer.
    /// @param threshold The least number of answers, each by another signer.
    /// @param maxAge How old an answer may be, in seconds.
    /// @param maxAhead How far a signer's clock may be ahead of the chain's, in seconds.
    /// @param signers The signers whose answers count. Each must be another operator's, or k of n means nothing.
    struct Settings {
        address owner;
        bytes32 endpointId;
        bytes32 requestHash;
        uint8 threshold;
        uint32 maxAge;
        uint32 maxAhead;
        address[] signers;
    }

    /// @notice There are fewer answers than the threshold.
    error TooFewAnswers(uint256 answers, uint256 threshold);
    /// @notice Two answers are by one signer.
    error DuplicateSigner(address node);
    /// @notice The node is not among the signers.
    error UnknownSigner(address node);
    /// @notice The answer is of another endpoint.
    error OtherEndpoint(address node, bytes32 endpointId);
    /// @notice The answer is older than {Settings.maxAge}.
    error Stale(address node, uint256 timestamp);
    /// @notice The answer's timestamp is further ahead than {Settings.maxAhead}.
    error FromTheFuture(address node, uint256 timestamp);
    /// @notice The answer's signature is not acceptable.
    error InvalidSignature(address node, SignedData.Fault fault);
    /// @notice The answer was signed by somebody else, or changed after it was signed.
    error WrongSigner(address node, address signer);
    /// @notice The receipt's signature is not acceptable.
    error InvalidReceipt(address node, SignedData.Fault fault);
    /// @notice The receipt was signed by somebody else, or is of another request or another answer.
    error WrongReceipt(address node, address signer);
    /// @notice The data is not one `int256`: a median is only of these.
    error MalformedData(address node);

    /// Returns the value of data that is one `int256`.
    function _valueOf(Answer calldata answer, bytes calldata data) internal pure returns (int256 value) {
        if (data.length != 32) revert MalformedData(answer.node);
        assembly ("memory-safe") {
            value := calldataload(data.offset)
        }
    }

    /// Inserts a value into the first `count` sorted values, after those that are not larger. The list must have room for it.
    function _insert(int256[] memory sorted, uint256 count, int256 next) internal pure {
        assembly ("memory-safe") {
            let at := add(sorted, shl(5, count))
            for {} and(gt(at, sorted), sgt(mload(at), next)) { at := sub(at, 0x20) } {
                mstore(add(at, 0x20), mload(at))
            }
            mstore(add(at, 0x20), next)
        }
    }

    /// Returns the median of sorted values; for an even number of them the mean of the middle two, rounded towards zero.
    function _middle(int256[] memory sorted) internal pure returns (int256 value) {
        uint256 middle = sorted.length / 2;
        value = sorted[middle];
        if (sorted.length % 2 == 0) value = _mean(sorted[middle - 1], value);
    }

    /// Returns the bit of a signer, by its place in the list.
    function _bitOf(address node, address[] memory signers) internal pure returns (uint256 bit) {
        assembly ("memory-safe") {
            let end := add(signers, shl(5, mload(signers)))
            bit := 1
            for { let at := add(signers, 0x20) } iszero(gt(at, end)) { at := add(at, 0x20) } {
                if eq(mload(at), node) { break }
                bit := shl(1, bit)
            }
            if iszero(lt(bit, shl(mload(signers), 1))) { bit := 0 }
        }
        if (bit == 0) revert UnknownSigner(node);
    }

    function _requireGood(Answer calldata answer, Settings memory wanted) internal view returns (uint256 timestamp) {
        address node = answer.node;
        bytes32 endpointId = wanted.endpointId;
        timestamp = answer.timestamp;
        if (answer.endpointId != endpointId) revert OtherEndpoint(node, answer.endpointId);
        // Neither sum overflows: the first line bounds the timestamp in the second.
        unchecked {
            if (timestamp > block.timestamp + wanted.maxAhead) revert FromTheFuture(node, timestamp);
            if (timestamp + wanted.maxAge < block.timestamp) revert Stale(node, timestamp);
        }
        bytes32 digest = SignedData.digestCalldata(endpointId, timestamp, answer.data);
        (address signer, SignedData.Fault fault) = SignedData.tryRecoverCalldata(digest, answer.signature);
        if (fault != SignedData.Fault.None) revert InvalidSignature(node, fault);
        if (signer != node) revert WrongSigner(node, signer);
        if (wanted.requestHash != 0) _requireReceipt(answer, wanted);
    }

    function _requireReceipt(Answer calldata answer, Settings memory wanted) internal pure {
        bytes32 digest =
            SignedData.receiptDigest(wanted.endpointId, wanted.requestHash, keccak256(answer.data), answer.timestamp);
        (address signer, SignedData.Fault fault) =
            SignedData.tryRecoverReceiptCalldata(digest, answer.receiptSignature);
        if (fault != SignedData.Fault.None) revert InvalidReceipt(answer.node, fault);
        if (signer != answer.node) revert WrongReceipt(answer.node, signer);
    }

    /// Halves before it adds, since a sum may not fit into an `int256`. `/` and `%` round towards zero, and so does their sum.
    function _mean(int256 low, int256 high) private pure returns (int256) {
        if ((low < 0) != (high < 0)) return (low + high) / 2;
        return low / 2 + high / 2 + (low % 2 + high % 2) / 2;
    }
}
