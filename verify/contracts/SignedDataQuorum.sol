// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedData} from "./SignedData.sol";

/// @title Accepts what k of n signers have answered, in one call that writes nothing
/// @notice Operators of one specification share one endpoint ID, so that a contract can compare what they say. A read of
/// this contract takes their answers and returns them checked, or their median.
///
/// Whoever calls it chooses the answers, within {Settings.maxAge}. Nothing is remembered: the same answers count again until
/// they are too old. A contract that must not take an answer twice, or go back to an older one, keeps the timestamp of
/// the last that it took, and wants a later one.
///
/// k of n protects from k - 1 signers that lie or lost their keys. It does not protect from the upstream that all of them ask.
contract SignedDataQuorum {
    /// @notice Fields of an answer as the service returns it.
    /// @param receiptSignature The field `signature` of its `receipt`; empty where {Settings.requestHash} is zero.
    struct Answer {
        address node;
        bytes32 endpointId;
        uint256 timestamp;
        bytes data;
        bytes signature;
        bytes receiptSignature;
    }

    /// @notice What answers must be to count.
    /// @param owner Who may propose other settings; the zero address: nobody, ever.
    /// @param endpointId The endpoint that must have been asked.
    /// @param requestHash What must have been asked there, by a receipt of each answer; zero: no receipts are wanted, and
    /// the endpoint must be one whose answer no requester can steer. Answers with `rawData` have no place here then.
    /// @param threshold How many answers there must be at least, each by another signer.
    /// @param maxAge How old an answer may be, in seconds.
    /// @param maxAhead How far a signer's clock may be ahead of the chain's, in seconds.
    /// @param signers Whose answers count; each an operator of its own, or k of n means nothing.
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
    /// @notice The node is none of the signers.
    error UnknownSigner(address node);
    /// @notice The answer is of another endpoint.
    error OtherEndpoint(address node, bytes32 endpointId);
    /// @notice The answer is older than {Settings.maxAge}.
    error Stale(address node, uint256 timestamp);
    /// @notice The answer comes from further ahead than {Settings.maxAhead}.
    error FromTheFuture(address node, uint256 timestamp);
    /// @notice The answer's signature is none that counts.
    error InvalidSignature(address node, SignedData.Fault fault);
    /// @notice The answer was signed by somebody else, or changed after it was signed.
    error WrongSigner(address node, address signer);
    /// @notice The receipt's signature is none that counts.
    error InvalidReceipt(address node, SignedData.Fault fault);
    /// @notice The receipt was signed by somebody else, or is of another request or another answer.
    error WrongReceipt(address node, address signer);
    /// @notice The data is not one `int256`, of which alone there is a median.
    error MalformedData(address node);

    /// @notice The settings cannot be met, or anybody could meet them.
    error InvalidSettings(string problem);
    /// @notice The caller is not who may do this.
    error Unauthorized(address caller);
    /// @notice There is no proposal, or its delay has not passed.
    error NotReady(uint256 readyAt);

    /// @notice Other settings were proposed, which count once they are accepted.
    event Proposed(Settings settings, uint256 readyAt);
    /// @notice The proposal is gone.
    event Cancelled();
    /// @notice Other settings are in force.
    event Accepted(Settings settings);

    /// More would make a read too dear; the answers seen are bits of a word.
    uint256 private constant MAX_SIGNERS = 64;

    /// @notice How long others can see proposed settings before these can count, in seconds.
    uint256 public immutable DELAY;

    /// The account whose code holds the settings: reading them all costs less than two slots of storage. It is the first of these
    /// two where nobody owns this contract, and the second otherwise.
    address private immutable _FIXED;
    address private _current;
    address private _proposed;

    /// @notice When the proposal can be accepted, in Unix seconds; 0 where there is none.
    uint256 public readyAt;

    /// @param initial What is in force at once.
    /// @param delay Of every change; means nothing without an owner.
    constructor(Settings memory initial, uint256 delay) {
        DELAY = delay;
        address account = _store(initial);
        if (initial.owner == address(0)) _FIXED = account;
        else _current = account;
        emit Accepted(initial);
    }

    /// @notice What answers must be to count.
    function settings() public view returns (Settings memory) {
        return _load(_FIXED == address(0) ? _current : _FIXED);
    }

    /// @notice What they would have to be once the proposal is accepted; reverts where there is none.
    function proposal() public view returns (Settings memory) {
        if (readyAt == 0) revert NotReady(0);
        return _load(_proposed);
    }

    /// @notice The first step to other settings, a new owner included. It replaces a proposal that waits.
    function propose(Settings calldata next) external {
        _requireOwner();
        _proposed = _store(next);
        readyAt = block.timestamp + DELAY;
        emit Proposed(next, readyAt);
    }

    /// @notice Takes the proposal back.
    function cancel() external {
        _requireOwner();
        delete readyAt;
        emit Cancelled();
    }

    /// @notice The second step, after the delay, by the owner that the proposal names: one whose key nobody has cannot take over.
    /// Where it names none, the owner of today gives up the last way to change anything.
    function accept() external {
        Settings memory next = proposal();
        if (next.owner == address(0)) _requireOwner();
        else if (msg.sender != next.owner) revert Unauthorized(msg.sender);
        if (block.timestamp < readyAt) revert NotReady(readyAt);
        _current = _proposed;
        delete readyAt;
        emit Accepted(next);
    }

    /// @notice The data of all answers, in their order, if every one of them is good.
    /// @return data As the endpoint encodes it.
    /// @return timestamp Of the oldest answer.
    function verify(Answer[] calldata answers) external view returns (bytes[] memory data, uint256 timestamp) {
        timestamp = _check(answers);
        data = new bytes[](answers.length);
        for (uint256 i; i < answers.length; ++i) data[i] = answers[i].data;
    }

    /// @notice The median of all answers, if every one of them is good and its data one `int256`.
    /// @return value Of an even number of answers the mean of the middle two, rounded towards zero.
    /// @return timestamp Of the oldest answer.
    function median(Answer[] calldata answers) external view returns (int256 value, uint256 timestamp) {
        timestamp = _check(answers);
        int256[] memory sorted = new int256[](answers.length);
        unchecked {
            for (uint256 i; i < sorted.length; ++i) _insert(sorted, i, answers[i]);
        }
        uint256 middle = sorted.length / 2;
        value = sorted[middle];
        if (sorted.length % 2 == 0) value = _mean(sorted[middle - 1], value);
    }

    /// Puts the value of an answer behind those of the first `count` that are not larger.
    function _insert(int256[] memory sorted, uint256 count, Answer calldata answer) private pure {
        bytes calldata data = answer.data;
        if (data.length != 32) revert MalformedData(answer.node);
        int256 next = int256(uint256(bytes32(data)));
        unchecked {
            for (; count > 0 && sorted[count - 1] > next; --count) sorted[count] = sorted[count - 1];
        }
        sorted[count] = next;
    }

    /// @return oldest The timestamp of the oldest answer.
    function _check(Answer[] calldata answers) private view returns (uint256 oldest) {
        Settings memory wanted = settings();
        uint256 count = answers.length;
        if (count < wanted.threshold) revert TooFewAnswers(count, wanted.threshold);
        oldest = type(uint256).max;
        uint256 seen;
        for (uint256 i; i < count;) {
            Answer calldata answer = answers[i];
            uint256 bit = _bitOf(answer.node, wanted.signers);
            if (seen & bit != 0) revert DuplicateSigner(answer.node);
            seen |= bit;
            uint256 timestamp = _requireGood(answer, wanted);
            if (timestamp < oldest) oldest = timestamp;
            unchecked {
                ++i;
            }
        }
    }

    /// A bit for each of the signers.
    function _bitOf(address node, address[] memory signers) private pure returns (uint256 bit) {
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

    function _requireGood(Answer calldata answer, Settings memory wanted) private view returns (uint256 timestamp) {
        address node = answer.node;
        bytes32 endpointId = wanted.endpointId;
        timestamp = answer.timestamp;
        if (answer.endpointId != endpointId) revert OtherEndpoint(node, answer.endpointId);
        // Neither sum overflows: the second is of a timestamp that the first line has bounded.
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

    function _requireReceipt(Answer calldata answer, Settings memory wanted) private pure {
        bytes32 digest =
            SignedData.receiptDigest(wanted.endpointId, wanted.requestHash, keccak256(answer.data), answer.timestamp);
        (address signer, SignedData.Fault fault) =
            SignedData.tryRecoverReceiptCalldata(digest, answer.receiptSignature);
        if (fault != SignedData.Fault.None) revert InvalidReceipt(answer.node, fault);
        if (signer != answer.node) revert WrongReceipt(answer.node, signer);
    }

    /// Halves before it adds, since a sum may have no `int256`; `/` and `%` round towards zero, and so does their sum.
    function _mean(int256 low, int256 high) private pure returns (int256) {
        if ((low < 0) != (high < 0)) return (low + high) / 2;
        return low / 2 + high / 2 + (low % 2 + high % 2) / 2;
    }

    function _requireOwner() private view {
        if (msg.sender != settings().owner) revert Unauthorized(msg.sender);
    }

    function _requireSound(Settings memory next) private pure {
        uint256 count = next.signers.length;
        if (count > MAX_SIGNERS) revert InvalidSettings("signers: more than 64");
        if (next.threshold == 0) revert InvalidSettings("threshold: 0 would accept no answer at all");
        if (next.threshold > count) revert InvalidSettings("threshold: more than there are signers");
        if (next.endpointId == 0) revert InvalidSettings("endpointId: zero");
        for (uint256 i; i < count; ++i) {
            if (next.signers[i] == address(0)) revert InvalidSettings("signers: the zero address");
            for (uint256 j; j < i; ++j) {
                if (next.signers[i] == next.signers[j]) revert InvalidSettings("signers: one of them twice");
            }
        }
    }

    /// Makes an account whose code is a zero, which cannot be run, and the settings.
    function _store(Settings memory next) private returns (address account) {
        _requireSound(next);
        bytes memory content = abi.encode(next);
        // PUSH2 length DUP1 PUSH1 10 PUSH0 CODECOPY PUSH0 RETURN: returns all that follows.
        bytes memory code = abi.encodePacked(hex"61", uint16(content.length + 1), hex"80600a5f395ff3", hex"00", content);
        assembly ("memory-safe") {
            account := create(0, add(code, 0x20), mload(code))
        }
        if (account == address(0)) revert InvalidSettings("they cannot be stored");
    }

    /// Reads what `abi.encode` has written to where it ends up as a struct in memory, which has the same layout but for one
    /// pointer: to decode it costs more than to check a signature. It was sound when it was stored.
    function _load(address account) private view returns (Settings memory kept) {
        assembly ("memory-safe") {
            // Behind the zero, and the word that says where the struct begins.
            let length := sub(extcodesize(account), 33)
            kept := mload(0x40)
            mstore(0x40, add(kept, length))
            extcodecopy(account, kept, 33, length)
            // The seventh member: the list, behind all members.
            mstore(add(kept, 0xc0), add(kept, 0xe0))
        }
    }
}
