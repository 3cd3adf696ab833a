import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { computeAddress } from 'ethers';
import pkcs11 from 'pkcs11js';

const { PKCS11 } = pkcs11;

/** Where Debian, Fedora, Alpine and Homebrew put it. */
const PLACES = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib64/pkcs11/libsofthsm2.so',
  '/usr/lib/pkcs11/libsofthsm2.so',
  '/opt/homebrew/lib/softhsm/libsofthsm2.so',
];

/** DER of the object identifiers of curves. */
export const CURVES = { secp256k1: '06052b8104000a', p256: '06082a8648ce3d030107' };

export interface KeyPair {
  readonly label: string;
  readonly curve?: string;
  /** Only the private half. */
  readonly lonely?: boolean;
}

/** SoftHSM, a real PKCS#11 token in software, with a directory of its own. */
export interface SoftHsm {
  readonly module: string;
  readonly pin: string;
  /** Where its tokens are. */
  readonly tokens: string;
  /** Makes a token with key pairs; before anybody has the module in use. @returns addresses by label. */
  initToken(label: string, keys: readonly KeyPair[]): Readonly<Record<string, string>>;
  /** Does something to the token of a module that is in use. */
  meddle(label: string, act: (library: InstanceType<typeof PKCS11>, slot: Buffer) => void): void;
  remove(): void;
}

/** From now on SoftHSM in this process is this one. @throws Error where it is not installed. */
export function createSoftHsm(): SoftHsm {
  const module = PLACES.find((place) => existsSync(place));
  if (module === undefined) throw new Error('SoftHSM is needed: apt-get install softhsm2');
  const folder = mkdtempSync(join(tmpdir(), 'sdp-softhsm-'));
  const conf = join(folder, 'softhsm2.conf');
  writeFileSync(conf, `directories.tokendir = ${folder}\nobjectstore.backend = file\nlog.level = ERROR\n`);
  process.env.SOFTHSM2_CONF = conf;
  const pin = '97531-geheim';
  const slotOf = (library: InstanceType<typeof PKCS11>, label: string) => {
    const found = library.C_GetSlotList(true).find((slot) => library.C_GetTokenInfo(slot).label.trim() === label);
    if (found === undefined) throw new Error(`no token ${label}`);
    return found;
  };
  return {
    module,
    pin,
    tokens: folder,
    initToken(label, keys) {
      const words = ['--init-token', '--free', '--label', label, '--so-pin', '24680', '--pin', pin];
      execFileSync('softhsm2-util', words, { stdio: 'pipe' });
      const library = new PKCS11();
      library.load(module);
      library.C_Initialize();
      const flags = pkcs11.CKF_SERIAL_SESSION | pkcs11.CKF_RW_SESSION;
      const session = library.C_OpenSession(slotOf(library, label), flags);
      library.C_Login(session, pkcs11.CKU_USER, pin);
      const made = keys.map((key) => [key.label, generate(library, session, key)]);
      library.C_Finalize();
      return Object.fromEntries(made);
    },
    meddle(label, act) {
      const library = new PKCS11();
      library.load(module);
      act(library, slotOf(library, label));
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}

function generate(library: InstanceType<typeof PKCS11>, session: Buffer, key: KeyPair): string {
  const { label, curve = CURVES.secp256k1, lonely = false } = key;
  const common = [
    { type: pkcs11.CKA_TOKEN, value: true },
    { type: pkcs11.CKA_LABEL, value: label },
  ];
  const { publicKey } = library.C_GenerateKeyPair(
    session,
    { mechanism: pkcs11.CKM_EC_KEY_PAIR_GEN },
    [...common, { type: pkcs11.CKA_EC_PARAMS, value: Buffer.from(curve, 'hex') }],
    [...common, { type: pkcs11.CKA_SIGN, value: true }, { type: pkcs11.CKA_EXTRACTABLE, value: false }],
  );
  const [point] = library.C_GetAttributeValue(session, publicKey, [{ type: pkcs11.CKA_EC_POINT }]);
  if (lonely) library.C_DestroyObject(session, publicKey);
  return curve === CURVES.secp256k1 ? computeAddress(`0x${point?.value.subarray(2).toString('hex')}`) : '';
}
