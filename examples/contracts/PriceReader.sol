// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "../../verify/contracts/SignedData.sol";
import {SignedDataReader} from "../../verify/contracts/SignedDataReader.sol";

/// @title A view that asks for the price of a symbol, and trusts one signer
contract PriceReader is SignedDataReader {
    address public immutable NODE;
    bytes32 public immutable ENDPOINT_ID;
    string[] private _urls;

    /// @param endpointId An endpoint with `receipt: true`, the encoding `int256` and the parameter `symbol`.
    constructor(address node, bytes32 endpointId, string[] memory urls) {
        NODE = node;
        ENDPOINT_ID = endpointId;
        _urls = urls;
    }

    /// @notice The price, and when it was signed.
    function price(string calldata symbol) external view returns (int256, uint256) {
        _ask(ENDPOINT_ID, string.concat('{"symbol":', SignedData.quote(symbol), "}"));
    }

    function _gateways() internal view override returns (string[] memory) {
        return _urls;
    }

    function _settings(bytes32 endpointId) internal view override returns (Settings memory wanted) {
        if (endpointId != ENDPOINT_ID) return wanted;
        wanted.threshold = 1;
        wanted.maxAge = 3 minutes;
        wanted.maxAhead = 1 minutes;
        wanted.signers = new address[](1);
        wanted.signers[0] = NODE;
    }

    function _onAnswer(bytes32, string memory, bytes[] memory data, uint256 timestamp)
        internal
        pure
        override
        returns (bytes memory)
    {
        return abi.encode(abi.decode(data[0], (int256)), timestamp);
    }
}
