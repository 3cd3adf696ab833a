// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedDataReader} from "../../verify/contracts/SignedDataReader.sol";

/// @title A view that asks several operators, and returns the median of those that answer well
/// @notice Its callers need a client with a batch gateway of its own: viem has one, ethers has none.
contract MedianReader is SignedDataReader {
    bytes32 public immutable ENDPOINT_ID;
    uint8 public immutable THRESHOLD;
    address[] private _signers;
    string[] private _urls;

    /// @param endpointId An endpoint with `receipt: true`, the encoding `int256` and no parameters.
    /// @param threshold How many must agree to answer, 2 at least.
    constructor(bytes32 endpointId, uint8 threshold, address[] memory signers, string[] memory urls) {
        ENDPOINT_ID = endpointId;
        THRESHOLD = threshold;
        _signers = signers;
        _urls = urls;
    }

    /// @notice The median, and when the oldest of its answers was signed.
    function price() external view returns (int256, uint256) {
        _ask(ENDPOINT_ID, "{}");
    }

    function _gateways() internal view override returns (string[] memory) {
        return _urls;
    }

    function _settings(bytes32 endpointId) internal view override returns (Settings memory wanted) {
        if (endpointId != ENDPOINT_ID) return wanted;
        wanted.threshold = THRESHOLD;
        wanted.maxAge = 3 minutes;
        wanted.maxAhead = 1 minutes;
        wanted.signers = _signers;
    }

    function _requireFit(Answer calldata answer) internal pure override {
        _valueOf(answer, answer.data);
    }

    function _onAnswer(bytes32, string memory, bytes[] memory data, uint256 timestamp)
        internal
        pure
        override
        returns (bytes memory)
    {
        int256[] memory sorted = new int256[](data.length);
        for (uint256 i; i < data.length; ++i) _insert(sorted, i, abi.decode(data[i], (int256)));
        return abi.encode(_middle(sorted), timestamp);
    }
}
