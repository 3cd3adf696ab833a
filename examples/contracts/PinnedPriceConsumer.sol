// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {SignedData} from "../../verify/contracts/SignedData.sol";

/// @dev What is needed of `SignedDataVerifier.sol`.
interface ISignedDataVerifier {
    function verifyAndFulfill(
        address node,
        bytes32 endpointId,
        uint256 timestamp,
        bytes calldata data,
        bytes calldata signature,
        address callback,
        bytes4 selector
    ) external;

    function digestOf(bytes32 endpointId, uint256 timestamp, bytes calldata data) external pure returns (bytes32);
}

/// @title A consumer that keeps the latest price of one request to one endpoint of one signer
/// @notice What `PriceConsumer` cannot do: the endpoint may have parameters, such as the asset, for the requester to fill in.
/// An answer counts only with a receipt, by the same signer, that it is the answer to {REQUEST_HASH}. Anyone may
/// deliver, and nobody needs to be trusted to.
contract PinnedPriceConsumer {
    /// @notice {onPrice} was called by something other than the verifier.
    error NotTheVerifier(address caller);
    /// @notice The answer came past {deliver}, so that nobody has looked for its receipt.
    error NoReceipt(bytes32 digest);
    /// @notice The receipt is no signature that counts, or not by {NODE}, or of another request or another answer.
    error WrongReceipt(address signer);
    /// @notice The answer is older than {MAX_AGE}.
    error TooOld(uint256 timestamp);
    /// @notice The answer comes from further ahead than {CLOCK_SKEW}.
    error FromTheFuture(uint256 timestamp);
    /// @notice This contract has an answer of that moment or a later one.
    error NotNewer(uint256 timestamp);

    /// @notice A new price is in force.
    event PriceUpdated(int256 price, uint256 timestamp, bytes32 indexed digest);

    /// @notice How old an answer may be when it is delivered, in seconds.
    uint256 public constant MAX_AGE = 5 minutes;
    /// @notice How far a signer's clock may be ahead of the chain's, in seconds.
    uint256 public constant CLOCK_SKEW = 1 minutes;

    ISignedDataVerifier public immutable VERIFIER;
    address public immutable NODE;
    bytes32 public immutable ENDPOINT_ID;
    bytes32 public immutable REQUEST_HASH;

    /// @notice The latest price, as the endpoint's encoding multiplies it; not valid before the first {PriceUpdated}.
    int256 public price;
    /// @notice When that price was signed, in Unix seconds; 0 before the first. Whoever reads the price must look at its age.
    uint256 public updatedAt;

    /// The digest of the answer that {deliver} has found the receipt of, while it delivers it.
    bytes32 private transient _receipted;

    /// @param verifier The `SignedDataVerifier` on this chain.
    /// @param node The signer's address. A contract whose signer may rotate its key needs a way to change it.
    /// @param endpointId An endpoint with `receipt: true` and the encoding `int256`.
    /// @param requestHash `requestHashOf({symbol: 'ETHUSD'})` of `signed-data-proxy/verify`:
    /// keccak256('{"parameters":{"symbol":"ETHUSD"}}').
    constructor(ISignedDataVerifier verifier, address node, bytes32 endpointId, bytes32 requestHash) {
        VERIFIER = verifier;
        NODE = node;
        ENDPOINT_ID = endpointId;
        REQUEST_HASH = requestHash;
    }

    /// @notice Takes an answer with its receipt; the other fields of both must be those that are pinned here.
    /// @param timestamp The field `timestamp` of the answer.
    /// @param data The field `data`. (Of a raw answer, which this contract does not take, `dataHash` is `bytes32(data)`.)
    /// @param signature The field `signature`.
    /// @param receiptSignature The field `signature` of its `receipt`.
    function deliver(uint256 timestamp, bytes calldata data, bytes calldata signature, bytes calldata receiptSignature)
        external
    {
        bytes32 receipt = SignedData.receiptDigest(ENDPOINT_ID, REQUEST_HASH, keccak256(data), timestamp);
        (address signer,) = SignedData.tryRecoverReceiptCalldata(receipt, receiptSignature);
        if (signer == address(0) || signer != NODE) revert WrongReceipt(signer);
        _receipted = VERIFIER.digestOf(ENDPOINT_ID, timestamp, data);
        VERIFIER.verifyAndFulfill(
            NODE, ENDPOINT_ID, timestamp, data, signature, address(this), PinnedPriceConsumer.onPrice.selector
        );
        delete _receipted;
    }

    /// @notice The callback of the verifier, by way of {deliver} alone.
    /// @dev Node and endpoint are those that {deliver} has named: the digest that it expects comes from nowhere else. Freshness is
    /// checked as in `PriceConsumer`, and for the same reasons.
    function onPrice(bytes32 digest, address, bytes32, uint256 timestamp, bytes calldata data) external {
        if (msg.sender != address(VERIFIER)) revert NotTheVerifier(msg.sender);
        if (digest != _receipted) revert NoReceipt(digest);
        // Neither sum overflows: the second is of a timestamp that the first line has bounded.
        if (timestamp > block.timestamp + CLOCK_SKEW) revert FromTheFuture(timestamp);
        if (timestamp + MAX_AGE < block.timestamp) revert TooOld(timestamp);
        if (timestamp <= updatedAt) revert NotNewer(timestamp);

        int256 newPrice = abi.decode(data, (int256));
        price = newPrice;
        updatedAt = timestamp;
        emit PriceUpdated(newPrice, timestamp, digest);
    }
}
