// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// @title A consumer that keeps the latest price of one endpoint of one signer
/// @notice An example of a callback for `SignedDataVerifier`. Anyone may deliver, and nobody needs to be trusted to: all
/// that the deliverer chooses is checked here or was checked by the verifier.
contract PriceConsumer {
    /// @notice {onPrice} was called by something other than the verifier.
    error NotTheVerifier(address caller);
    /// @notice The answer is properly signed, by a signer that this contract does not trust.
    error UnknownNode(address node);
    /// @notice The answer is the trusted signer's, to another question.
    error UnknownEndpoint(bytes32 endpointId);
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
    /// @notice How far a signer's clock may be ahead of the chain's, whose blocks carry a time up to a slot old; in seconds.
    uint256 public constant CLOCK_SKEW = 1 minutes;

    address public immutable VERIFIER;
    address public immutable NODE;
    bytes32 public immutable ENDPOINT_ID;

    /// @notice The latest price, as the endpoint's encoding multiplies it; not valid before the first {PriceUpdated}.
    int256 public price;
    /// @notice When that price was signed, in Unix seconds; 0 before the first. Whoever reads the price must look at its age.
    uint256 public updatedAt;

    /// @param verifier The `SignedDataVerifier` on this chain.
    /// @param node The signer's address. A contract whose signer may rotate its key needs a way to change it.
    /// @param endpointId An endpoint with the encoding `int256` and without parameters or wildcards (`*`) for the
    /// requester to fill in: those are not part of what is signed, so the answer to another question would be accepted.
    constructor(address verifier, address node, bytes32 endpointId) {
        VERIFIER = verifier;
        NODE = node;
        ENDPOINT_ID = endpointId;
    }

    /// @notice The callback. None of its checks is optional, because anyone may call the verifier with any answer of any
    /// signer, and name this function.
    /// @dev - Caller: the verifier is what checked the signature. Without this check anyone could call this function with a
    ///   price of their own.
    /// - Node: the verifier accepts every signer. Without this check anyone could sign a price with a key of their own.
    /// - Endpoint: the signer answers other questions too. Without this check the price of another asset would do.
    /// - Freshness: a signature never expires. Without the check of age, whoever has kept an old answer could bring back
    ///   its price on the day that suits them; without that of the future, one answer of a clock that ran ahead would block
    ///   all others until its time; without that of the order, the deliverer could choose among all answers of the
    ///   last minutes and set a newer price back to an older one.
    ///
    /// The verifier accepts an answer once per callback and selector. This contract does not rely on it: an
    /// answer that was delivered is not newer than itself.
    function onPrice(bytes32 digest, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data) external {
        if (msg.sender != VERIFIER) revert NotTheVerifier(msg.sender);
        if (node != NODE) revert UnknownNode(node);
        if (endpointId != ENDPOINT_ID) revert UnknownEndpoint(endpointId);
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
