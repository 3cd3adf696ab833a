// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "./SignedData.sol";

/// @title Delivers answers of a signed-data proxy to consumer contracts
/// @notice Anyone may deliver any answer of any signer to any contract, once. The verifier proves one thing to the
/// callback: that `node` signed `endpointId`, `timestamp` and `data`. The callback decides whether that signer, that endpoint
/// and that time are acceptable. The verifier has no owner, no registry of signers, no fee and no upgrade.
///
/// A callback must check all of this itself, as `PriceConsumer.sol` shows:
/// 1. `msg.sender` is this verifier, or anyone could call the callback with made-up arguments;
/// 2. `node` is a signer that it trusts, or anyone could sign with a key of their own;
/// 3. `endpointId` is the endpoint that it asks, or another answer of the trusted signer would do;
/// 4. `timestamp` is recent, not in the future and newer than that of its last answer, or an old answer would do.
///
/// The signed data names no chain, no verifier and no consumer: an answer may also be delivered elsewhere, and to every
/// callback once. It names no request parameters either: pin endpoints whose answer the requester cannot steer.
///
/// @dev This contract calls any contract, with arguments of which the deliverer chooses all but the digest. It must
/// therefore never hold or be granted anything: no tokens, no approvals, no roles. It takes no ether and needs none.
contract SignedDataVerifier {
    /// @notice An answer was delivered. The event is logged before the callback runs, and reverted with it if that fails.
    /// @param digest The digest that was signed; see {digestOf}.
    event Fulfilled(
        bytes32 indexed digest,
        address indexed node,
        bytes32 indexed endpointId,
        uint256 timestamp,
        address callback,
        bytes4 selector
    );

    /// The deliveries made, by the hash of digest, signer, callback and selector. The signature is no part of the hash: a
    /// signer can make many signatures of one digest, and all of them are the same delivery.
    mapping(bytes32 delivery => bool) private _fulfilled;

    /// @notice Checks an answer's signature and calls `callback.selector(bytes32 digest, address node, bytes32 endpointId,
    /// uint256 timestamp, bytes data)`.
    /// @dev The delivery is marked before the call: a callback that delivers it again gets `Already fulfilled`. If the
    /// callback reverts, so does everything, with the callback's own reason; the delivery can then be tried again. The
    /// deliverer chooses the gas: a callback must not catch the failure of a step that it needs.
    /// @param node The field `node` of the answer: the signer's address.
    /// @param endpointId The field `endpointId`.
    /// @param timestamp The field `timestamp`: Unix seconds at signing.
    /// @param data The field `data`; for an answer with `rawData` the 32 bytes keccak256(canonical JSON text of `rawData`).
    /// @param signature The field `signature`: r, s and v (27 or 28), 65 bytes.
    /// @param callback A contract. Accounts without code are refused, since a call to them succeeds and does nothing.
    /// @param selector The function of the callback to call.
    function verifyAndFulfill(
        address node,
        bytes32 endpointId,
        uint256 timestamp,
        bytes calldata data,
        bytes calldata signature,
        address callback,
        bytes4 selector
    ) external {
        bytes32 digest = digestOf(endpointId, timestamp, data);
        require(_signerOf(digest, signature) == node, "Signature mismatch");
        require(callback.code.length != 0, "Callback has no code");
        bytes32 delivery = _deliveryOf(digest, node, callback, selector);
        require(!_fulfilled[delivery], "Already fulfilled");

        _fulfilled[delivery] = true;
        emit Fulfilled(digest, node, endpointId, timestamp, callback, selector);

        _call(callback, abi.encodeWithSelector(selector, digest, node, endpointId, timestamp, data));
    }

    /// @notice Returns whether a delivery was made. If so, {verifyAndFulfill} would revert with `Already fulfilled`.
    /// @param digest The digest that was signed; see {digestOf}.
    function isFulfilled(bytes32 digest, address node, address callback, bytes4 selector) external view returns (bool) {
        return _fulfilled[_deliveryOf(digest, node, callback, selector)];
    }

    /// @notice Returns the digest that a signer signs, as an EIP-191 personal message of 32 bytes.
    function digestOf(bytes32 endpointId, uint256 timestamp, bytes calldata data) public pure returns (bytes32) {
        return SignedData.digest(endpointId, timestamp, data);
    }

    function _deliveryOf(bytes32 digest, address node, address callback, bytes4 selector) private pure returns (bytes32) {
        return keccak256(abi.encode(digest, node, callback, selector));
    }

    /// Returns the signer: never the zero address.
    function _signerOf(bytes32 digest, bytes calldata signature) private pure returns (address) {
        (address signer, SignedData.Fault fault) = SignedData.tryRecover(digest, signature);
        require(fault != SignedData.Fault.Length, "Invalid signature length");
        require(fault != SignedData.Fault.V, "Invalid signature v");
        require(fault != SignedData.Fault.S, "Invalid signature s");
        require(fault == SignedData.Fault.None, "Invalid signature");
        return signer;
    }

    /// Reverts with exactly the bytes with which the callback reverted. Return data of a successful call is not copied, so
    /// that long data costs the deliverer nothing here.
    function _call(address callback, bytes memory payload) private {
        assembly ("memory-safe") {
            if iszero(call(gas(), callback, 0, add(payload, 0x20), mload(payload), 0, 0)) {
                let reason := mload(0x40)
                returndatacopy(reason, 0, returndatasize())
                revert(reason, returndatasize())
            }
        }
    }
}
