// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

// Half the order n of secp256k1. Of the two valid signatures, with s and n - s, only the one with the lower s counts (EIP-2).
uint256 constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

/// @title Digests and signers of the answers of a signed-data proxy
/// @notice Functions for contracts that check answers by themselves. They do not check whether the signer, the endpoint and
/// the time are acceptable: the contract that calls them must.
library SignedData {
    /// @notice What is wrong with a signature.
    /// `Length`: it is not 65 bytes long (compact ones of EIP-2098 are refused, too). `V`: the last byte is not 27 or 28.
    /// `S`: s is in the upper half of the curve order (EIP-2). `Signer`: it belongs to no key.
    enum Fault {
        None,
        Length,
        V,
        S,
        Signer
    }

    /// @notice The signature is not acceptable.
    error InvalidSignature(Fault fault);

    bytes32 private constant RECEIPT_TYPE =
        keccak256("Receipt(bytes32 endpointId,bytes32 requestHash,bytes32 dataHash,uint256 timestamp)");

    /// A receipt is bound to no chain and to no contract, like the answer.
    bytes32 private constant DOMAIN_SEPARATOR = keccak256(
        abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("Signed Data Receipt"), keccak256("1"))
    );

    /// @notice Returns the digest of an answer, which is signed as an EIP-191 personal message of 32 bytes.
    /// @param data The field `data`; for an answer with `rawData` the 32 bytes keccak256(canonical JSON text of `rawData`).
    function digest(bytes32 endpointId, uint256 timestamp, bytes memory data) internal pure returns (bytes32) {
        // Only the last member has no fixed length, so no two answers pack to the same bytes.
        return keccak256(abi.encodePacked(endpointId, timestamp, data));
    }

    /// @notice As {digest}, for data in calldata, which is not copied.
    function digestCalldata(bytes32 endpointId, uint256 timestamp, bytes calldata data)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encodePacked(endpointId, timestamp, data));
    }

    /// @notice Returns the signer of a {digest}: never the zero address.
    /// @param signature The field `signature`: r, s and v, 65 bytes.
    function recover(bytes32 digest_, bytes memory signature) internal pure returns (address) {
        return _signerOf(_personal(digest_), signature);
    }

    /// @notice As {recover}, but returns a fault instead of reverting. The signer is zero exactly if there is a fault.
    function tryRecover(bytes32 digest_, bytes memory signature) internal pure returns (address, Fault) {
        return _trySignerOf(_personal(digest_), signature);
    }

    /// @notice As {tryRecover}, for a signature in calldata, which is not copied.
    function tryRecoverCalldata(bytes32 digest_, bytes calldata signature) internal pure returns (address, Fault) {
        return _trySignerOfCalldata(_personal(digest_), signature);
    }

    /// @notice Returns the digest that is signed of a receipt (EIP-712).
    /// @param dataHash keccak256 of the answer's `data`; for an answer with `rawData` the 32 bytes that are signed of it.
    function receiptDigest(bytes32 endpointId, bytes32 requestHash_, bytes32 dataHash, uint256 timestamp)
        internal
        pure
        returns (bytes32)
    {
        bytes32 receipt = keccak256(abi.encode(RECEIPT_TYPE, endpointId, requestHash_, dataHash, timestamp));
        return keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR, receipt));
    }

    /// @notice Returns the signer of a {receiptDigest}: never the zero address.
    /// @param signature The field `signature` of the answer's `receipt`.
    function recoverReceipt(bytes32 receiptDigest_, bytes memory signature) internal pure returns (address) {
        return _signerOf(receiptDigest_, signature);
    }

    /// @notice As {recoverReceipt}, for a signature in calldata, which is not copied. Returns a fault instead of reverting.
    function tryRecoverReceiptCalldata(bytes32 receiptDigest_, bytes calldata signature)
        internal
        pure
        returns (address, Fault)
    {
        return _trySignerOfCalldata(receiptDigest_, signature);
    }

    /// @notice Returns the request hash of a receipt.
    /// @param parameters The canonical JSON (RFC 8785) of the parameters: an object whose names are sorted, without spaces, such
    /// as `{"symbol":"ETHUSD"}`. Pass each text that is not a constant through {quote}.
    function requestHash(string memory parameters) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked('{"parameters":', parameters, "}"));
    }

    /// @notice Returns a text as RFC 8785 writes it, with quotation marks, so that a chosen value cannot add a parameter.
    /// @param text UTF-8, which is not checked.
    function quote(string memory text) internal pure returns (string memory) {
        bytes memory from = bytes(text);
        // No character takes more than six bytes.
        bytes memory to = new bytes(from.length * 6 + 2);
        uint256 length;
        to[length++] = '"';
        for (uint256 i; i < from.length; ++i) {
            bytes memory written = _written(from[i]);
            for (uint256 j; j < written.length; ++j) to[length++] = written[j];
        }
        to[length++] = '"';
        assembly ("memory-safe") {
            mstore(to, length)
        }
        return string(to);
    }

    /// Returns one byte of a text as JSON: a short escape if there is one, else lower-case hex digits.
    function _written(bytes1 char) private pure returns (bytes memory) {
        if (char == '"') return '\\"';
        if (char == "\\") return "\\\\";
        if (char >= 0x20) return abi.encodePacked(char);
        if (char == 0x08) return "\\b";
        if (char == 0x09) return "\\t";
        if (char == 0x0a) return "\\n";
        if (char == 0x0c) return "\\f";
        if (char == 0x0d) return "\\r";
        bytes16 digits = "0123456789abcdef";
        return abi.encodePacked("\\u00", digits[uint8(char) >> 4], digits[uint8(char) & 15]);
    }

    /// Returns the hash of a personal message (EIP-191, version 0x45).
    function _personal(bytes32 digest_) private pure returns (bytes32 hash) {
        assembly ("memory-safe") {
            mstore(0x00, "\x19Ethereum Signed Message:\n32")
            mstore(0x1c, digest_)
            hash := keccak256(0x00, 0x3c)
        }
    }

    function _signerOf(bytes32 hash, bytes memory signature) private pure returns (address signer) {
        Fault fault;
        (signer, fault) = _trySignerOf(hash, signature);
        if (fault != Fault.None) revert InvalidSignature(fault);
    }

    function _trySignerOf(bytes32 hash, bytes memory signature) private pure returns (address, Fault) {
        if (signature.length != 65) return (address(0), Fault.Length);
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        return _check(hash, v, r, s);
    }

    function _trySignerOfCalldata(bytes32 hash, bytes calldata signature) private pure returns (address, Fault) {
        if (signature.length != 65) return (address(0), Fault.Length);
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := calldataload(signature.offset)
            s := calldataload(add(signature.offset, 0x20))
            v := byte(0, calldataload(add(signature.offset, 0x40)))
        }
        return _check(hash, v, r, s);
    }

    function _check(bytes32 hash, uint8 v, bytes32 r, bytes32 s) private pure returns (address, Fault) {
        if (v != 27 && v != 28) return (address(0), Fault.V);
        if (uint256(s) > MAX_S) return (address(0), Fault.S);
        address signer = ecrecover(hash, v, r, s);
        return (signer, signer == address(0) ? Fault.Signer : Fault.None);
    }
}
