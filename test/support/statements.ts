import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { verifyMessage, verifyTypedData } from 'ethers';
import { personalStatement, receiptStatement } from '../../lib/eth/statements.ts';
import { type Definition, toHex } from '../../plugins-sdk/index.ts';
import type { OpenSigner, Statement } from '../../plugins-sdk/signing.ts';
import type { Lifetime } from './lifetime.ts';
import { silent } from './services.ts';

/** One that nobody aborts. */
const never = () => new AbortController().signal;

/** Both kinds of statements, of 32 bytes each. */
export function statementsOf(digest: Uint8Array): [Statement, Statement] {
  const hash = toHex(digest);
  return [
    personalStatement(digest),
    receiptStatement({ endpointId: hash, requestHash: hash, dataHash: hash, timestamp: digest[0] ?? 0 }),
  ];
}

/** Whose signature it is, as ethers says. */
export function signerOf(statement: Statement, signature: string): string {
  if (statement.kind === 'personal') return verifyMessage(statement.digest, signature);
  const { domain, types, message } = statement.data();
  const { EIP712Domain: _, ...fields } = types;
  return verifyTypedData(
    domain,
    Object.fromEntries(Object.entries(fields).map(([k, v]) => [k, [...v]])),
    message,
    signature,
  );
}

/** Has both kinds of statements of a digest signed and checks the signatures as strictly as a contract would. */
export async function assertSigns(signer: OpenSigner, digest: Uint8Array): Promise<void> {
  for (const statement of statementsOf(digest)) {
    const signature = await signer.sign(statement, never());
    assert.match(signature, /^0x[0-9a-f]{64}[0-7][0-9a-f]{63}1[bc]$/);
    assert.equal(signerOf(statement, signature), signer.address);
  }
}

/** Opens the one kind of signer that a plugin contributes; it is closed after the test. */
export async function openSigner(t: Lifetime, plugin: Definition, config: unknown): Promise<OpenSigner> {
  const [type = assert.fail('no signer')] = Object.values(plugin.signers ?? {});
  const signer = await type.open(config, { log: silent, path: resolve, role: 'current' });
  t.after(async () => signer.close?.());
  return signer;
}

/** The message of the error that signing the digest 0x11… ends with. */
export async function refusalOf(signer: OpenSigner, signal = never()): Promise<string> {
  const [statement] = statementsOf(new Uint8Array(32).fill(17));
  try {
    await signer.sign(statement, signal);
  } catch (error) {
    assert.ok(error instanceof Error);
    return error.message;
  }
  return assert.fail('it was signed');
}

/** Asserts what an error says, which is never a secret. */
export function assertSays(said: string, expected: string | RegExp, secret: string): void {
  if (typeof expected === 'string') assert.equal(said, expected);
  else assert.match(said, expected);
  assert.ok(!said.includes(secret));
}
