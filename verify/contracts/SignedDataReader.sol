// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "./SignedData.sol";
import {SignedDataAnswers} from "./SignedDataAnswers.sol";

/// @title The call to gateways of operators with `settings.ccipRead`
interface ISignedDataGateway {
    /// @param parameters The text of a JSON object.
    function ask(bytes32 endpointId, string calldata parameters)
        external
        view
        returns (
            address node,
            bytes32 id,
            uint256 timestamp,
            bytes memory data,
            bytes memory signature,
            bytes memory receiptSignature
        );
}

/// @title The batch gateway of ENSIP-21, which clients implement themselves
interface IBatchGateway {
    struct Query {
        address sender;
        string[] urls;
        bytes data;
    }

    function query(Query[] calldata queries) external view returns (bool[] memory failures, bytes[] memory responses);
}

/// @title Views that fetch answers of signed-data proxies (ERC-3668, CCIP-Read)
/// @notice A view calls {_ask}, and returns the result of {_onAnswer}, which gets the checked answers. With a threshold of 1 the
/// gateways are tried one after the other. With a larger one all are asked, by the batch gateway of the client.
///
/// Anybody can call {onSignedData} with a question of their own in `extraData`. It is proven only that the data which {_onAnswer}
/// gets answers the question which it gets. As a view, it returns the answer to a made-up question only to the caller who made
/// it up. A contract that reads by it in a transaction must compare endpoint and parameters with those that it expects.
/// The same answer counts again until it is too old. Call the contract directly: clients refuse lookups of another sender.
abstract contract SignedDataReader is SignedDataAnswers {
    /// @notice Asks the client to fetch something and to call back (ERC-3668).
    error OffchainLookup(address sender, string[] urls, bytes callData, bytes4 callbackFunction, bytes extraData);

    /// @notice Returns the URLs of gateways, such as `https://one.example/ccip/{sender}/{data}.json`, or
    /// `https://one.example/ccip` (POST).
    function _gateways() internal view virtual returns (string[] memory);

    /// @notice Returns the signers whose answers of an endpoint count (255 at most), how many are needed, and how old they may
    /// be. The reader fills in endpoint and request hash. An endpoint that may not be asked has no signers.
    function _settings(bytes32 endpointId) internal view virtual returns (Settings memory);

    /// @notice Returns the result of the view for good answers, ABI-encoded.
    /// @param data The data of each answer, each by another signer; at least as many as the threshold.
    /// @param timestamp The timestamp of the oldest answer.
    function _onAnswer(bytes32 endpointId, string memory parameters, bytes[] memory data, uint256 timestamp)
        internal
        view
        virtual
        returns (bytes memory);

    /// @notice Reverts for an answer whose data {_onAnswer} cannot use. Such an answer does not count.
    function _requireFit(Answer calldata answer) internal view virtual {}

    /// @notice Makes the client ask the gateways. The endpoint needs receipts, because nothing else proves which parameters an
    /// answer is for.
    /// @param parameters Canonical JSON of all that a receipt covers, defaults included; see {SignedData-quote}.
    function _ask(bytes32 endpointId, string memory parameters) internal view {
        string[] memory urls = _gateways();
        bytes memory question = abi.encodeCall(ISignedDataGateway.ask, (endpointId, parameters));
        if (_settings(endpointId).threshold > 1) {
            question = abi.encodeCall(IBatchGateway.query, (_queries(urls, question)));
            urls = new string[](1);
            urls[0] = "x-batch-gateway:true";
        }
        bytes memory extraData = abi.encode(endpointId, parameters);
        revert OffchainLookup(address(this), urls, question, this.onSignedData.selector, extraData);
    }

    /// @notice The callback of {_ask}. It returns the result of the view as it is, not as `bytes`.
    function onSignedData(bytes calldata response, bytes calldata extraData) external view {
        (bytes32 endpointId, string memory parameters) = abi.decode(extraData, (bytes32, string));
        Settings memory wanted = _settings(endpointId);
        wanted.endpointId = endpointId;
        wanted.requestHash = SignedData.requestHash(parameters);
        (bytes[] memory data, uint256 oldest) = wanted.threshold > 1 ? _several(response, wanted) : _one(response, wanted);
        bytes memory result = _onAnswer(endpointId, parameters, data, oldest);
        assembly ("memory-safe") {
            return(add(result, 0x20), mload(result))
        }
    }

    /// @notice Returns one answer if it is good, else reverts. It is public, so that {_several} can skip a bad answer.
    /// @return bit The bit of its signer.
    function checkAnswer(bytes calldata response, Settings memory wanted)
        public
        view
        returns (uint256 bit, uint256 timestamp, bytes memory data)
    {
        // The members of the answer are encoded as those of a struct are, from the start of the response.
        Answer calldata answer;
        assembly ("memory-safe") {
            answer := response.offset
        }
        bit = _bitOf(answer.node, wanted.signers);
        timestamp = _requireGood(answer, wanted);
        _requireFit(answer);
        data = answer.data;
    }

    function _one(bytes calldata response, Settings memory wanted)
        private
        view
        returns (bytes[] memory data, uint256 timestamp)
    {
        data = new bytes[](1);
        (, timestamp, data[0]) = checkAnswer(response, wanted);
    }

    /// A gateway that is down or lies counts as one that was not asked. A signer counts once.
    function _several(bytes calldata response, Settings memory wanted)
        private
        view
        returns (bytes[] memory data, uint256 oldest)
    {
        (bool[] memory failures, bytes[] memory responses) = abi.decode(response, (bool[], bytes[]));
        data = new bytes[](responses.length);
        oldest = type(uint256).max;
        uint256 count;
        uint256 seen;
        for (uint256 i; i < responses.length; ++i) {
            if (failures[i]) continue;
            try this.checkAnswer(responses[i], wanted) returns (uint256 bit, uint256 timestamp, bytes memory said) {
                if (seen & bit != 0) continue;
                seen |= bit;
                data[count++] = said;
                if (timestamp < oldest) oldest = timestamp;
            } catch {}
        }
        if (count < wanted.threshold) revert TooFewAnswers(count, wanted.threshold);
        assembly ("memory-safe") {
            mstore(data, count)
        }
    }

    /// Makes the same question for each of the gateways.
    function _queries(string[] memory urls, bytes memory question)
        private
        view
        returns (IBatchGateway.Query[] memory queries)
    {
        queries = new IBatchGateway.Query[](urls.length);
        for (uint256 i; i < urls.length; ++i) {
            string[] memory one = new string[](1);
            one[0] = urls[i];
            queries[i] = IBatchGateway.Query(address(this), one, question);
        }
    }
}
