import { Wallet } from 'ethers';

/** Accounts of every local test chain, the second and the third. */
export const SECOND = new Wallet('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d');
export const THIRD = new Wallet('0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a');

/**
 * A plugin file with signers of the type `kept`: `{type: kept, key, fault?}`. A fault is one of `garbage`, `other` (somebody
 * else's signature), `slow` (does not end until it is aborted), `stuck` (never
 * ends), `throws`, `closed` (cannot be opened), `mute` (does not sign
 * receipts). What it does is noted in `globalThis[notes]`.
 */
export function signerPlugin(notes: string): string {
  return `import { Wallet, SigningKey, hexlify } from ${JSON.stringify(import.meta.resolve('ethers'))};
    const note = (text) => (globalThis[${JSON.stringify(notes)}] ??= []).push(text);
    const other = new SigningKey('0x' + '77'.repeat(32));
    const text = { type: 'string' };
    const schema = { type: 'object', required: ['key'], properties: { key: text, fault: text } };
    const open = async ({ key, fault }, { role }) => {
      note('open ' + role);
      if (fault === 'closed') throw new Error('the vault is closed');
      const { address, signingKey } = new Wallet(key);
      const raw = (hash, by) => by.sign(hexlify(hash)).serialized;
      let proofs = 0;
      const sign = async (statement, signal) => {
        const isProof = statement.kind === 'personal' && statement.digest.every((byte) => byte === 0);
        note((isProof ? 'prove ' : 'sign ') + role + ' ' + statement.kind);
        // What proves at the start that it signs is let through, so that a request sees the fault.
        if (isProof && fault !== 'dead') return raw(statement.hash, signingKey);
        if (fault === 'garbage') return '0x1234';
        if (fault === 'other') return raw(statement.hash, other);
        if (fault === 'throws' || fault === 'dead') throw new Error('the vault says no');
        if (fault === 'mute' && statement.kind === 'typed') throw new Error('no typed data here');
        if (fault === 'slow')
          return new Promise((_, reject) => signal.addEventListener('abort', () => { note('aborted'); reject(signal.reason); }));
        if (fault === 'stuck') return new Promise(() => undefined);
        return raw(statement.hash, signingKey);
      };
      return { address, sign, close: async () => note('close ' + role) };
    };
    export default { name: 'kept-signer', signers: { kept: { schema, open } }, setup: () => ({}) };`;
}
