// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {SignedDataAnswers} from "./SignedDataAnswers.sol";

/// @title Accepts what k of n signers have answered, in one call that writes nothing
/// @notice Operators of one specification share one endpoint ID, so that a contract can compare what they say. A read of
/// this contract takes their answers and returns them checked, or their median.
///
/// Whoever calls it chooses the answers, within {Settings.maxAge}. Nothing is remembered: the same answers count again until
/// they are too old. A contract that must not take an answer twice, or go back to an older one, keeps the timestamp of
/// the last that it took, and wants a later one.
///
/// k of n protects from k - 1 signers that lie or lost their keys. It does not protect from the upstream that all of them ask.
contract SignedDataQuorum is SignedDataAnswers {
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
            for (uint256 i; i < sorted.length; ++i) _insert(sorted, i, _valueOf(answers[i]));
        }
        value = _middle(sorted);
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
