import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import {
  CompactPkeCrs,
  ShortintCompactPublicKeyEncryptionParameters as EncryptionParameters,
  Shortint,
  ShortintEncryptionKeyChoice,
  ShortintParameters,
  ShortintParametersName,
  ShortintCompactPublicKeyEncryptionParametersName as StandardName,
  TfheClientKey,
  TfheCompactPublicKey,
  TfheConfigBuilder,
} from 'node-tfhe';

/** What the operator of a relayer has, and the one secret of the coprocessors. */
export interface Keys {
  /** The dimension of the lattice. */
  readonly dimension: number;
  /** Decrypts. */
  readonly client: Buffer;
  readonly public: Buffer;
  /** The common reference string of the proofs. */
  readonly crs: Buffer;
}

/** Bytes that a serialized key may have. */
const LARGEST = 1n << 30n;

/** Bits that the reference string must be good for: one euint256. The networks' own is for 2048 and takes twice as long. */
const CAPACITY = 256;

function generate(encryption: EncryptionParameters, dimension: number, capacity: number): Keys {
  const config = TfheConfigBuilder.default()
    .use_custom_parameters(new ShortintParameters(ShortintParametersName.PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128))
    .use_dedicated_compact_public_key_parameters(encryption)
    .build();
  const client = TfheClientKey.generate(config);
  return {
    dimension,
    client: Buffer.from(client.safe_serialize(LARGEST)),
    public: Buffer.from(TfheCompactPublicKey.new(client).safe_serialize(LARGEST)),
    crs: Buffer.from(CompactPkeCrs.from_config(config, capacity).safe_serialize(LARGEST)),
  };
}

/** The parameters of the real networks. Takes two minutes of a processor. */
function generateRealKeys(): Keys {
  const { PARAM_PKE_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128: name } = StandardName;
  return generate(new EncryptionParameters(name), 2048, CAPACITY);
}

/** Where the library keeps which kind of proof the parameters are for, counted from the start of their record. */
const PROOF_KIND_AT = 77;
const FIRST_KIND_OF_PROOF = 1;

/**
 * A lattice so small that it protects nothing, and that one core makes keys and a proof in well under a second each:
 * good for a single euint8. Everything else, from the format of the ciphertext to the SDK's whole way, is the same.
 *
 * The binding takes parameters of any size, but has no argument for the kind of proof and sets "none".
 *
 * @param dimension at least a number for each four bits that are encrypted at once. With only two, other bytes of a ciphertext
 *   read like a list that `decrypt` looks for.
 * @param capacity bits that are encrypted at once.
 */
export function generateToyKeys(dimension = 4, capacity = 8): Keys {
  const noise = Shortint.try_new_t_uniform(1);
  const parameters = EncryptionParameters.new_parameters(
    dimension,
    noise,
    4n,
    4n,
    64,
    4,
    4,
    ShortintEncryptionKeyChoice.Small,
  );
  setByte(parameters, PROOF_KIND_AT, FIRST_KIND_OF_PROOF);
  return generate(parameters, dimension, capacity);
}

function setByte(record: object, offset: number, value: number): void {
  const member = (from: unknown, name: string): unknown =>
    typeof from === 'object' && from !== null ? Reflect.get(from, name) : undefined;
  const address = member(record, '__wbg_ptr');
  const memory = member(member(member(createRequire(import.meta.url)('node-tfhe'), '__wasm'), 'memory'), 'buffer');
  if (typeof address !== 'number' || !(memory instanceof ArrayBuffer)) throw new Error('the binding has changed');
  new Uint8Array(memory)[address + offset] = value;
}

/** The reference string may be one for 2048 bits, as the networks have it. */
const files = { client: ['ck.bin'], public: ['pk.bin'], crs: ['crs.bin', 'crs2048.bin'] } as const;

/**
 * Real keys from a folder, where they are put when they are not there: `ck.bin` (client key), `pk.bin` (public key) and `crs.bin`
 * or `crs2048.bin` (reference string).
 */
export function realKeys(folder: string): Keys {
  const known = load(folder);
  if (known !== undefined) return known;
  const keys = generateRealKeys();
  store(folder, keys);
  return keys;
}

function load(folder: string): Keys | undefined {
  const read = (names: readonly string[]) => {
    const file = names.map((name) => join(folder, name)).find((path) => existsSync(path));
    return file === undefined ? undefined : readFileSync(file);
  };
  const [client, publicKey, crs] = [read(files.client), read(files.public), read(files.crs)];
  if (client === undefined || publicKey === undefined || crs === undefined) return undefined;
  return { dimension: 2048, client, public: publicKey, crs };
}

/** A generation that is interrupted leaves nothing that looks whole: the file that is put there last is needed too. */
function store(folder: string, keys: Keys): void {
  mkdirSync(folder, { recursive: true });
  for (const part of ['client', 'public', 'crs'] as const) {
    const file = join(folder, files[part][0]);
    writeFileSync(`${file}.part`, keys[part]);
    renameSync(`${file}.part`, file);
  }
}
