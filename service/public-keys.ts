import type { Address } from '../lib/eth/hex.ts';

/** Addresses of keys that are published, without `0x`, by where they are. Of the mnemonics it is the first address, or as many as a tool unlocks. */
const PUBLISHED: readonly (readonly [source: string, addresses: string])[] = [
  [
    'anvil and hardhat',
    `
    f39fd6e51aad88f6f4ce6ab8827279cfffb92266 70997970c51812dc3a010c7d01b50e0d17dc79c8
    3c44cdddb6a900fa2b585dd299e03d12fa4293bc 90f79bf6eb2c4f870365e785982e1f101e93b906
    15d34aaf54267db7d7c367839aaf71a00a2c6a65 9965507d1a55bcc2695c58ba16fb37d819b0a4dc
    976ea74026e726554db657fa54763abd0c3a0aa9 14dc79964da2c08b23698b3d3cc7ca32193d9955
    23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f a0ee7a142d267c1f36714e4a8f75612f20a79720
    bcd4042de499d14e55001ccbb24a551f3b954096 71be63f3384f5fb98995898a86b02fb2426c5788
    fabb0ac9d68b0b445fb7357272ff202c5651694a 1cbd3b2770909d4e10f157cabc84c7264073c9ec
    df3e18d64bc6a983f673ab319ccae4f1a57c7097 cd3b766ccdd6ae721141f452c550ca635964ce71
    2546bcd3c84621e976d8185a91a922ae77ecec30 bda5747bfd65f08deb54cb465eb87d40e51b197e
    dd2fd4581271e230360230f9337d5c0430bf44c0 8626f6940e2eb28930efb4cef49b2d1f2c9c1199
  `,
  ],
  [
    'ganache',
    `
    90f8bf6a479f320ead074411a4b0e7944ea8c9c1 ffcf8fdee72ac11b5c542428b35eef5769c409f0
    22d491bde2303f2f43325b2108d26f1eaba1e32b e11ba2b4d45eaed5996cd0823791e0c93114882d
    d03ea8624c8c5987235048901fb614fdca89b117 95ced938f7991cd0dfcb48f0a06a40fa1af46ebc
    3e5e9111ae8eb78fe1cc3bb8915d5d461f3ef9a9 28a8746e75304c0780e011bed21c72cd78cd535e
    aca94ef8bd5ffee41947b4585a84bda5a3d3da6e 1df62f291b2e969fb0849d99d9ce41e2f137006e
  `,
  ],
  [
    'truffle',
    `
    627306090abab3a6e1400e9345bc60c78a8bef57 f17f52151ebef6c7334fad080c5704d77216b732
    c5fdf4076b8f3a5357c5e395ab970b5b54098fef 821aea9a577a9b44299b9c15c88cf3087f3b5544
    0d1d4e623d10f9fba5db95830f7d3839406c6af2 2932b7a2355d6fecc4b5c0b6bd44cc31df247a2e
    2191ef87e392377ec08e7c08eb105ef5448eced5 0f4f2ac550a1b4e2280d04c21cea7ebd822934b5
    6330a553fc93768f612722bb8c2ec78ac90b3bbc 5aeda56215b167893e80b4fe645ba6d5bab767de
  `,
  ],
  [
    'the test vectors of BIP-39',
    `
    9858effd232b4033e47d90003d41ec34ecaeda94 197a1bee163923815ba58ead0f14b3fcd8c5926d
    f278cf59f82edcf871d630f28ecc8056f25c1cdb 58a57ed9d8d624cbd12e2c467d34787555bb1b25
    633f85f91b904540ede9caac759ce46ecc44ebbb 2f826cb22e80a2c40f149ecb92b2fa5ecbf67170
    3061750d3df69ef7b8d4407cb7f3f879fd9d2398 8d93934ab91e2417a21f25f3f862efcbcea85f9e
    c6e4a4f5a9743fab9bc8d648499e63e083d2519a fc2077ca7f403cbeca41b1b0f62d91b5ea631b5e
    bb2ca357e5780141f34500d43e492bee15531211 1959f5f4979c5cd87d5cb75c678c770515cb5e0e
    d01d6027860c2e2e37295d3de4b5a5f46f68d52f 6a1e05e3226a8e11b9fafa9b18d2528f91c1300c
    1dd9058722abee7eb7c24b7270c5f88d342e2e90 c70ec8094cce52b6574a5a2b7bf0c7d8288d77cc
    7d92741af28f2c5bd20ecb3a016dc7d837096f66 63f9a92d8d61b48a9fff8d58080425a3012d05c8
    10e886d96cb811db30ba0c2951774535a956451d 0500e4db45ad4f5ebbf60a2a01a69a8914425b8f
    505ee9b25c62a176ba6021023ea3f6937f4609f2 93bb483bd2d0190d48778ba21f7d85f793bbced0
    51bbd30515d056f318b6314297c2215dc2f24f41 a817afd48e0f85c4555453912785d1e4142608eb
  `,
  ],
  [
    'the private key 1',
    `
    7e5f4552091a69125d5dfcb7b8c2659029395bdf
  `,
  ],
];

/** Where the key of an address is published, if it is known to be: then anyone can sign with it. */
export function publishedIn(address: Address): string | undefined {
  return PUBLISHED.find(([, addresses]) => addresses.includes(address.slice(2).toLowerCase()))?.[0];
}

/** What an operator is told at every start. */
export function publicKeyWarning(address: Address): string | undefined {
  const source = publishedIn(address);
  return (
    source &&
    `the key of ${address} is public (${source}): anyone can sign in its name; make one with generate-mnemonic`
  );
}
