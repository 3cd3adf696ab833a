// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "../../../verify/contracts/SignedData.sol";

/// Calls the library as a contract of somebody else does.
contract SignedDataUser {
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
}
