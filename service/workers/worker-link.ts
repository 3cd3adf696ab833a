import { hash } from 'node:crypto';
import type { Server } from 'node:http';
import type { LoadedConfig } from '../../config/index.ts';
import type { Address } from '../../lib/http/listen.ts';
import { signerKey } from '../../plugins-sdk/keys.ts';
import type { Meters } from '../../plugins-sdk/meters.ts';
import { isRecord } from '../../plugins-sdk/schema/path.ts';
import type { Workers } from '../../plugins-sdk/workers.ts';
import { signerAddressOf } from '../assemble.ts';
import type { ServiceLog } from '../log.ts';
import { ENVIRONMENT } from '../signers.ts';
import { stateOf } from '../state-engine.ts';

/** What a service is told that is one of several processes. */
export interface WorkerLink {
  /** Whether it says what would be the same in every process. */
  readonly announces: boolean;
  readonly workers: Workers;
  /** Asks for instruments of what is known of the processes. */
  measure(meters: Meters): void;
  /** Listens where all processes do. @param config the fingerprint of the one that it has started by. */
  listen(server: Server, address: Address, config: string): Promise<void>;
}

/** A config whose plugins have started, and which waits to be put in force. */
export interface Prepared {
  /** Its fingerprint. */
  readonly config: string;
  commit(): void;
  /** Stops what was started. */
  abort(): Promise<void>;
}

const hashOf = (value: unknown) => hash('sha256', JSON.stringify(value));

/**
 * What two processes must have in common to serve the same: the config, and what stays until a restart. It tells nobody what
 * the values are.
 * @param first the config that the process started with.
 */
export function fingerprintOf(loaded: LoadedConfig, first: LoadedConfig): string {
  const chosen = signerKey.in(loaded.config);
  const whose = isRecord(chosen) && chosen.type !== ENVIRONMENT ? 'elsewhere' : 'own';
  return [hashOf(loaded.config), hashOf(stateOf(first)), whose, hashOf(signerAddressOf(loaded))].join(' ');
}

/** What to do about two fingerprints that differ. */
export function differenceOf(one: string, other: string): string {
  const [config, state, whose, address] = one.split(' ');
  const [otherConfig, otherState, others, otherAddress] = other.split(' ');
  // A signer that the config names comes with a reload; a key of the environment, and another key behind the same settings, does not.
  const lasting = config === otherConfig || (whose === 'own' && others === 'own');
  return state === otherState && (address === otherAddress || !lasting)
    ? 'what it read is not the config in force: reload it (SIGHUP), or restore the files'
    : 'settings.state or the signing key is not that of the other workers: restart the service, or restore the files and reload them (SIGHUP)';
}

/** A log that keeps to itself what the other processes say, too, until it is told to speak. */
export function quiet(log: ServiceLog): { readonly log: ServiceLog; readonly say: () => void } {
  let isQuiet = true;
  return {
    log: {
      ...log,
      info: (...line) => isQuiet || log.info(...line),
      warn: (...line) => isQuiet || log.warn(...line),
    },
    say: () => {
      isQuiet = false;
    },
  };
}
