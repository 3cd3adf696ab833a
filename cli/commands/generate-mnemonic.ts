import { HDNodeWallet } from 'ethers';
import { DERIVATION_PATH } from '../../plugins-sdk/signing/local-key.ts';
import { print } from '../../service/terminal.ts';

/** Prints a new account: 128 bits of entropy as 12 BIP-39 words, and the key at the path that `SERVICE_MNEMONIC` uses. */
export async function generateMnemonic(): Promise<void> {
  const wallet = HDNodeWallet.createRandom('', DERIVATION_PATH);
  const lines = [
    `Mnemonic: ${wallet.mnemonic?.phrase}`,
    `Private key: ${wallet.privateKey}`,
    `Address: ${wallet.address}`,
  ];
  await print(`${lines.join('\n')}\n`);
}
