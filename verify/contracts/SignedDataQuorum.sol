// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {MAX_S} from "./SignedData.sol";
import {SignedDataAnswers} from "./SignedDataAnswers.sol";

/// @title Checks the answers of k of n signers in one view call
/// @notice Operators of one specification share one endpoint ID, so that a contract can compare their answers. A read of
/// this contract takes the answers, checks them, and returns their data or their median.
///
/// The caller chooses the answers, within {Settings.maxAge}. Nothing is remembered: the same answers count again until
/// they are too old. A contract that must not take an answer twice, or an older one after a newer one, must keep the
/// timestamp of the last answer that it took, and require a later one.
///
/// k of n protects against k - 1 signers that lie or lost their keys. It does not protect against the upstream of all of them.
contract SignedDataQuorum is SignedDataAnswers {
    /// @notice The settings cannot be met, or anybody could meet them.
    error InvalidSettings(string problem);
    /// @notice The caller may not do this.
    error Unauthorized(address caller);
    /// @notice There is no proposal, or its delay has not passed.
    error NotReady(uint256 readyAt);

    /// @notice Other settings were proposed. They count once they are accepted.
    event Proposed(Settings settings, uint256 readyAt);
    /// @notice The proposal was withdrawn.
    event Cancelled();
    /// @notice Other settings are in force.
    event Accepted(Settings settings);

    /// More signers would make a read too expensive. The signers seen are bits of one word.
    uint256 private constant MAX_SIGNERS = 64;

    /// @notice How long others can see proposed settings before these can count, in seconds.
    uint256 public immutable DELAY;

    /// The account whose code holds the settings: reading all of them costs less than two slots of storage. It is `_FIXED` if
    /// this contract has no owner, and `_current` otherwise.
    address private immutable _FIXED;
    address private _current;
    address private _proposed;

    /// @notice When the proposal can be accepted, in Unix seconds; 0 if there is none.
    uint256 public readyAt;

    /// @param initial The settings that are in force at once.
    /// @param delay Seconds from each proposal until it can be accepted; without effect if there is no owner.
    constructor(Settings memory initial, uint256 delay) {
        DELAY = delay;
        address account = _store(initial);
        if (initial.owner == address(0)) _FIXED = account;
        else _current = account;
        emit Accepted(initial);
    }

    /// @notice Returns the settings in force.
    function settings() public view returns (Settings memory) {
        return _load(_FIXED == address(0) ? _current : _FIXED);
    }

    /// @notice Returns the proposed settings; reverts if there are none.
    function proposal() public view returns (Settings memory) {
        if (readyAt == 0) revert NotReady(0);
        return _load(_proposed);
    }

    /// @notice Proposes other settings, which may name a new owner. Replaces a proposal that waits.
    function propose(Settings calldata next) external {
        _requireOwner();
        _proposed = _store(next);
        readyAt = block.timestamp + DELAY;
        emit Proposed(next, readyAt);
    }

    /// @notice Withdraws the proposal.
    function cancel() external {
        _requireOwner();
        delete readyAt;
        emit Cancelled();
    }

    /// @notice Accepts the proposal, after the delay. The owner that it names must call this, so that an address without a key
    /// cannot take over. If it names none, the present owner must, and nothing can be changed afterwards.
    function accept() external {
        Settings memory next = proposal();
        if (next.owner == address(0)) _requireOwner();
        else if (msg.sender != next.owner) revert Unauthorized(msg.sender);
        if (block.timestamp < readyAt) revert NotReady(readyAt);
        _current = _proposed;
        delete readyAt;
        emit Accepted(next);
    }

    /// @notice Returns the data of all answers, in their order. Reverts unless every one of them is good.
    /// @return data The data of each answer, as the endpoint encodes it.
    /// @return timestamp The timestamp of the oldest answer.
    function verify(Answer[] calldata answers) external view returns (bytes[] memory data, uint256 timestamp) {
        Settings memory wanted = _settingsFor(answers.length);
        data = new bytes[](answers.length);
        timestamp = type(uint256).max;
        uint256 seen;
        for (uint256 i; i < answers.length; ++i) {
            (seen, timestamp, data[i]) = _take(answers[i], wanted, seen, timestamp);
        }
    }

    /// @notice Returns the median of all answers. Reverts unless every one of them is good and its data one `int256`.
    /// @return value The median; for an even number of answers the mean of the middle two, rounded towards zero.
    /// @return timestamp The timestamp of the oldest answer.
    function median(Answer[] calldata answers) external view returns (int256 value, uint256 timestamp) {
        Settings memory wanted = _settingsFor(answers.length);
        int256[] memory sorted = new int256[](answers.length);
        timestamp = type(uint256).max;
        uint256 seen;
        unchecked {
            for (uint256 i; i < answers.length; ++i) {
                Answer calldata answer = _at(answers, i);
                bytes calldata data;
                (seen, timestamp, data) = _take(answer, wanted, seen, timestamp);
                _insert(sorted, i, _valueOf(answer, data));
            }
        }
        value = _middle(sorted);
    }

    function _settingsFor(uint256 count) private view returns (Settings memory wanted) {
        wanted = settings();
        if (count < wanted.threshold) revert TooFewAnswers(count, wanted.threshold);
    }

    /// Returns `answers[i]` without the checks of bounds, which {_take} does not need.
    function _at(Answer[] calldata answers, uint256 i) private pure returns (Answer calldata answer) {
        assembly ("memory-safe") {
            answer := add(answers.offset, calldataload(add(answers.offset, shl(5, i))))
        }
    }

    /// Checks one more answer, as {_requireGood} does, for 2,000 gas less: it reads calldata once, in assembly. If it finds a
    /// fault, {_requireGood} names it. Words beyond the end of the calldata are zero, which is no signature.
    /// @param seen A bit for the signer of each answer before this one.
    /// @param oldest The least timestamp of the answers before this one.
    function _take(Answer calldata answer, Settings memory wanted, uint256 seen, uint256 oldest)
        private
        view
        returns (uint256 nowSeen, uint256 time, bytes calldata data)
    {
        assembly ("memory-safe") {
            // The data. To hash a length that no calldata has would cost all gas.
            let at := add(answer, calldataload(add(answer, 0x60)))
            data.offset := add(at, 0x20)
            data.length := calldataload(at)
            let fault := gt(data.length, calldatasize())
            if fault { data.length := 0 }
            // The hash of endpoint ID, time and data, and then that of the personal message (EIP-191).
            let free := mload(0x40)
            let endpointId := mload(add(wanted, 0x20))
            fault := or(fault, xor(calldataload(add(answer, 0x20)), endpointId))
            time := calldataload(add(answer, 0x40))
            mstore(free, endpointId)
            mstore(add(free, 0x20), time)
            calldatacopy(add(free, 0x40), data.offset, data.length)
            mstore(0, "\x19Ethereum Signed Message:\n32")
            mstore(0x1c, keccak256(free, add(0x40, data.length)))
            // The input of ecrecover: hash, v, r and s. It has no output if there is no signer.
            mstore(free, keccak256(0, 0x3c))
            at := add(answer, calldataload(add(answer, 0x80)))
            fault := or(fault, xor(calldataload(at), 65))
            mstore(add(free, 0x20), byte(0, calldataload(add(at, 0x60))))
            calldatacopy(add(free, 0x40), add(at, 0x20), 0x40)
            fault := or(fault, gt(mload(add(free, 0x60)), MAX_S))
            mstore(0, 0)
            pop(staticcall(gas(), 1, free, 0x80, 0, 0x20))
            let signer := mload(0)
            fault := or(fault, or(iszero(signer), xor(calldataload(answer), signer)))
            // The age. The second sum overflows only for a time that the first line refuses.
            fault := or(fault, gt(time, add(timestamp(), mload(add(wanted, 0xa0)))))
            fault := or(fault, lt(add(time, mload(add(wanted, 0x80))), timestamp()))
            // The signer's place in the list. A copy behind the list, where {_load} leaves a word for it, ends the search.
            let first := add(mload(add(wanted, 0xc0)), 0x20)
            let end := add(first, shl(5, mload(sub(first, 0x20))))
            mstore(end, signer)
            for { at := first } iszero(eq(mload(at), signer)) { at := add(at, 0x20) } {}
            nowSeen := or(seen, mul(gt(lt(at, end), fault), shl(shr(5, sub(at, first)), 1)))
        }
        if (nowSeen == seen) _refuse(answer, wanted, seen);
        if (wanted.requestHash != 0) _requireReceipt(answer, wanted);
        if (time > oldest) time = oldest;
    }

    /// Reverts with the fault of an answer that {_take} refuses.
    function _refuse(Answer calldata answer, Settings memory wanted, uint256 seen) private view {
        if (_bitOf(answer.node, wanted.signers) & seen != 0) revert DuplicateSigner(answer.node);
        _requireGood(answer, wanted);
        assert(false);
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

    /// Creates an account whose code is the settings, behind a zero byte, so that they cannot be run.
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

    /// Reads the settings without decoding them, which would cost more than to check a signature. The output of `abi.encode` has
    /// the layout of the struct in memory, except for one pointer. The settings were checked when they were stored.
    function _load(address account) private view returns (Settings memory kept) {
        assembly ("memory-safe") {
            // Skips the zero, and the word with the offset of the struct.
            let length := sub(extcodesize(account), 33)
            kept := mload(0x40)
            // One more word, for {_take}.
            mstore(0x40, add(kept, add(length, 0x20)))
            extcodecopy(account, kept, 33, length)
            // The seventh member points to the list, which follows all members.
            mstore(add(kept, 0xc0), add(kept, 0xe0))
        }
    }
}
