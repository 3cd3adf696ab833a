// SPDX-License-Identifier: MIT
pragma solidity ^0.8.26;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";

/// A token that can be paid by authorisation (EIP-3009), as USDC can, and that anyone may mint, for tests on a local chain.
contract PayToken is ERC3009 {
    constructor() ERC20("Pay Token", "PAY") EIP712("Pay Token", "1") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
