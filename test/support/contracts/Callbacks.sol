// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

interface IVerifier {
    function verifyAndFulfill(
        address node,
        bytes32 endpointId,
        uint256 timestamp,
        bytes calldata data,
        bytes calldata signature,
        address callback,
        bytes4 selector
    ) external;
}

/// Logs what it is called with, for any caller.
contract Recorder {
    event Received(address caller, bytes32 digest, address node, bytes32 endpointId, uint256 timestamp, bytes data);

    function receiveAnswer(bytes32 digest, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data) public {
        emit Received(msg.sender, digest, node, endpointId, timestamp, data);
    }

    function receiveElsewhere(bytes32 digest, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data)
        external
    {
        receiveAnswer(digest, node, endpointId, timestamp, data);
    }

    /// Returns a mebibyte.
    function returnMuch(bytes32, address, bytes32, uint256, bytes calldata) external pure {
        assembly {
            return(0, 0x100000)
        }
    }
}

/// Callbacks that fail, each in its own way, until they are told not to.
contract Failing {
    error Rejected(uint256 code, string why);

    bool public mended;

    function mend() external {
        mended = true;
    }

    function withString(bytes32, address, bytes32, uint256, bytes calldata) external view {
        require(mended, "not today");
    }

    function withCustomError(bytes32, address, bytes32, uint256, bytes calldata) external view {
        if (!mended) revert Rejected(7, "closed");
    }

    function withPanic(bytes32, address, bytes32, uint256, bytes calldata) external view {
        assert(mended);
    }

    function withNothing(bytes32, address, bytes32, uint256, bytes calldata) external view {
        if (!mended) revert();
    }

    function withMuch(bytes32, address, bytes32, uint256, bytes calldata) external pure {
        assembly {
            let memoryUnused := mload(0x40)
            mstore(memoryUnused, not(0))
            revert(memoryUnused, 0x2000)
        }
    }

    function withoutGas(bytes32, address, bytes32, uint256, bytes calldata) external pure {
        assembly {
            invalid()
        }
    }
}

/// Delivers again what is being delivered to it.
contract Reentrant {
    event Caught(bytes reason);
    event Entered(bytes32 digest);

    bytes public signature;

    constructor(bytes memory signature_) {
        signature = signature_;
    }

    /// Passes the failure on.
    function again(bytes32, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data) external {
        IVerifier(msg.sender).verifyAndFulfill(
            node, endpointId, timestamp, data, signature, address(this), this.again.selector
        );
    }

    /// Catches the failure.
    function againCaught(bytes32, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data) external {
        try IVerifier(msg.sender).verifyAndFulfill(
            node, endpointId, timestamp, data, signature, address(this), this.againCaught.selector
        ) {} catch (bytes memory reason) {
            emit Caught(reason);
        }
    }

    /// Delivers to another function, which is another delivery.
    function elsewhere(bytes32, address node, bytes32 endpointId, uint256 timestamp, bytes calldata data) external {
        IVerifier(msg.sender).verifyAndFulfill(
            node, endpointId, timestamp, data, signature, address(this), this.enter.selector
        );
    }

    function enter(bytes32 digest, address, bytes32, uint256, bytes calldata) external {
        emit Entered(digest);
    }
}
