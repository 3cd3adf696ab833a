// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignedMath} from "@openzeppelin/contracts/utils/math/SignedMath.sol";
import {SignedData} from "../../../verify/contracts/SignedData.sol";
import {SignedDataAnswers} from "../../../verify/contracts/SignedDataAnswers.sol";

/// Calls the library as a contract of somebody else does, and shows beside it what OpenZeppelin's says.
contract SignedDataUser is SignedDataAnswers {
    function digest(bytes32 endpointId, uint256 timestamp, bytes calldata data) external pure returns (bytes32) {
        return SignedData.digest(endpointId, timestamp, data);
    }

    function recover(bytes32 digest_, bytes calldata signature) external pure returns (address) {
        return SignedData.recover(digest_, signature);
    }

    function tryRecover(bytes32 digest_, bytes calldata signature) external pure returns (address, SignedData.Fault) {
        return SignedData.tryRecover(digest_, signature);
    }

    function receiptDigest(bytes32 endpointId, bytes32 requestHash_, bytes32 dataHash, uint256 timestamp)
        external
        pure
        returns (bytes32)
    {
        return SignedData.receiptDigest(endpointId, requestHash_, dataHash, timestamp);
    }

    function recoverReceipt(bytes32 receiptDigest_, bytes calldata signature) external pure returns (address) {
        return SignedData.recoverReceipt(receiptDigest_, signature);
    }

    function requestHash(string calldata parameters) external pure returns (bytes32) {
        return SignedData.requestHash(parameters);
    }

    function quote(string calldata text) external pure returns (string memory) {
        return SignedData.quote(text);
    }

    /// The zero address where it recovers nobody.
    function recoverByOpenZeppelin(bytes32 digest_, bytes calldata signature) external pure returns (address signer) {
        (signer,,) = ECDSA.tryRecover(MessageHashUtils.toEthSignedMessageHash(digest_), signature);
    }

    function middle(int256[] calldata values) external pure returns (int256) {
        int256[] memory sorted = new int256[](values.length);
        for (uint256 i; i < values.length; ++i) _insert(sorted, i, values[i]);
        return _middle(sorted);
    }

    function averageByOpenZeppelin(int256 one, int256 other) external pure returns (int256) {
        return SignedMath.average(one, other);
    }
}
