// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "@redstone-finance/evm-connector/contracts/core/RedstoneConsumerNumericBase.sol";

/// @notice What is compared with `SignedDataQuorum` at 3 of 5: the same signers, as constants in code, which is the cheapest way.
contract RedStoneMedian is RedstoneConsumerNumericBase {
    error Unknown(address signer);

    function getUniqueSignersThreshold() public pure override returns (uint8) {
        return 3;
    }

    function getAuthorisedSignerIndex(address signer) public pure override returns (uint8) {
        if (signer == 0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf) return 0;
        if (signer == 0x2B5AD5c4795c026514f8317c7a215E218DcCD6cF) return 1;
        if (signer == 0x6813Eb9362372EEF6200f3b1dbC3f819671cBA69) return 2;
        if (signer == 0x1efF47bc3a10a45D4B230B5d10E37751FE6AA718) return 3;
        if (signer == 0xe1AB8145F7E55DC933d51a18c793F901A3A0b276) return 4;
        revert Unknown(signer);
    }

    function median(bytes32 feed) external view returns (uint256) {
        return getOracleNumericValueFromTxMsg(feed);
    }
}
