import { Field } from '@noble/curves/abstract/modular';
import { weierstrass } from '@noble/curves/abstract/weierstrass';
import { keccak_256 } from '@noble/hashes/sha3';

/** In place of the functions that signing needs; recovery never calls them. */
function unused(): never {
  throw new Error('nothing is signed here');
}

/**
 * The curve of Ethereum (SEC 2, section 2.4.1), for recovery alone. The library's own curve includes SHA-256 and HMAC for
 * signing, which would be a tenth of what a page loads.
 */
export const secp256k1 = weierstrass({
  a: 0n,
  b: 7n,
  Fp: Field(0xffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_ffff_fc2fn),
  n: 0xffff_ffff_ffff_ffff_ffff_ffff_ffff_fffe_baae_dce6_af48_a03b_bfd2_5e8c_d036_4141n,
  Gx: 0x79be_667e_f9dc_bbac_55a0_6295_ce87_0b07_029b_fcdb_2dce_28d9_59f2_815b_16f8_1798n,
  Gy: 0x483a_da77_26a3_c465_5da4_fbfc_0e11_08a8_fd17_b448_a685_5419_9c47_d08f_fb10_d4b8n,
  h: 1n,
  lowS: true,
  hash: keccak_256,
  hmac: unused,
  randomBytes: unused,
});
