// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// A token that anyone may mint, for tests on a local chain.
contract TestToken is ERC20("Test token", "TEST") {
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
