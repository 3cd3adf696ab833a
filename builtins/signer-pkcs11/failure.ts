import { type Static, Type } from '../../plugins-sdk/index.ts';
import { closedObject } from '../../plugins-sdk/schema/closed-object.ts';

const text = (description: string) => Type.String({ minLength: 1, description });
export const Schema = closedObject({
  module: text('The PKCS#11 library of the HSM, a .so file; relative to the config file'),
  token: text('Label of the token'),
  label: text('Label of the key pair (CKA_LABEL)'),
  pin: text('PIN of the user of the token, from a variable'),
});
export type Config = Static<typeof Schema>;
type Setting = keyof Config;
export type Library = typeof import('pkcs11js');

/** What is wrong, and which setting is about it. */
export class TokenFailure extends Error {
  readonly setting: Setting;

  constructor(setting: Setting, message: string) {
    super(message);
    this.setting = setting;
  }
}

/** The return values of PKCS#11 that an operator can do something about. */
const SETTINGS: readonly [RegExp, Setting][] = [
  [/^CKR_(PIN|USER)_/, 'pin'],
  [/^CKR_(TOKEN|SLOT|DEVICE|SESSION)_/, 'token'],
  [/^CKR_(KEY|OBJECT|MECHANISM)_/, 'label'],
];

/** The return value of a function of PKCS#11 that failed. */
export function nameOf(error: unknown): string {
  const [name] = /^CKR_\w+/.exec(error instanceof Error ? error.message : '') ?? [];
  return name ?? 'what PKCS#11 has no name for';
}

/** Whether a token that was looked for may be there a moment later. */
export function mayPass(error: unknown): boolean {
  return error instanceof TokenFailure ? error.setting === 'token' : nameOf(error) === 'CKR_GENERAL_ERROR';
}

/** Says which setting to look at; the PIN is in no error. */
export function explained(error: unknown): Error {
  const name = nameOf(error);
  const setting = SETTINGS.find(([pattern]) => pattern.test(name))?.[1] ?? 'module';
  const failure = error instanceof TokenFailure ? error : new TokenFailure(setting, `the module says ${name}`);
  return new Error(`${failure.setting}: ${failure.message}`);
}
