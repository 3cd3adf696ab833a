import type { LoadedConfig } from '../config/index.ts';
import type { Endpoint } from '../kernel/values.ts';
import { proxiesInForce } from '../lib/http/client/proxies.ts';
import type { Log } from '../plugins-sdk/log.ts';
import type { Environment } from '../plugins-sdk/signing/variables.ts';
import { signerAddressOf } from './assemble.ts';
import { addressOf, workersOf } from './listener.ts';
import { publicKeyWarning } from './public-keys.ts';
import type { StateClient } from './shared-state.ts';
import type { Signers } from './signers.ts';
import { stateOf } from './state-engine.ts';

function lineOf({ api, name, id }: Endpoint): string {
  return `${api}/${name} ${id}`;
}

/** Returns a line with name and ID for each endpoint: `+` is new, `=` stays, `-` is gone. */
function endpointLines(before: LoadedConfig, after: LoadedConfig): string[] {
  const had = new Set(before.endpoints.map(({ id }) => id));
  const has = new Set(after.endpoints.map(({ id }) => id));
  return [
    ...after.endpoints.map((endpoint) => `${had.has(endpoint.id) ? '=' : '+'} ${lineOf(endpoint)}`),
    ...before.endpoints.filter(({ id }) => !has.has(id)).map((endpoint) => `- ${lineOf(endpoint)}`),
  ];
}

/** Returns a line for each changed key that takes effect only at a restart. @param first the config of the start. */
function lasting(first: LoadedConfig, after: LoadedConfig): string[] {
  const [was, is] = [addressOf(first.config), addressOf(after.config)];
  const stays = (key: string, isSame: boolean, value: string | number = 'as it is') =>
    isSame ? [] : [`${key}: stays ${value} until the service is restarted`];
  return [
    ...stays('server.port', was.port === is.port, was.port),
    ...stays('server.host', was.host === is.host, was.host),
    ...stays('server.workers', workersOf(first.config) === workersOf(after.config)),
    ...stays('settings.state', stateOf(first) === stateOf(after)),
  ];
}

/** Warns of each signer whose key is published. */
export function warnOfPublicKeys(log: Log, loaded: LoadedConfig, signers: Signers): void {
  for (const address of signers.addressesIn(loaded).signers) {
    const warning = publicKeyWarning(address);
    if (warning !== undefined) log.warn(warning);
  }
}

/** Logs what a service does, at its start: its address, signers, state engine, proxies and endpoints. */
export function announce(log: Log, url: string, loaded: LoadedConfig, signers: Signers, state?: StateClient): void {
  const backend = signers.ownKey(loaded.config)?.backend;
  log.info(`listening on ${url}`);
  const { current, next } = signers.inUse(loaded.config) ?? {};
  log.info(`signer ${signerAddressOf(loaded)}`, backend ? { backend } : current && { type: current.type });
  if (next !== undefined) log.info(`next signer ${next.signer.address}`, { type: next.type });
  if (backend === 'ethers') log.warn('secp256k1 cannot be loaded: signing is several times slower');
  if (state !== undefined) log.info(`state is kept by the engine "${state.engine}"`);
  for (const line of proxiesInForce().lines) log.info(line);
  for (const doubt of state?.doubts() ?? []) log.warn(doubt);
  for (const endpoint of loaded.endpoints) log.info(lineOf(endpoint));
}

/** The configs around a reload, and what they were loaded with. */
export interface Reload {
  readonly first: LoadedConfig;
  readonly before: LoadedConfig;
  readonly after: LoadedConfig;
  readonly env: Environment;
  readonly signers: Signers;
}

/** Logs what a reload has changed, and what needs a restart. */
export function report(log: Log, { first, before, after, env, signers }: Reload): void {
  log.info('config reloaded');
  for (const line of endpointLines(before, after)) log.info(line);
  for (const line of lasting(first, after)) log.warn(line);
  warnOfPublicKeys(log, after, signers);
  if (after.plugins.some(({ operator, isolated = false }) => operator && !isolated)) {
    log.info('plugins were set up anew; changes of their code need a restart');
  }
  const [was, is] = [signerAddressOf(before), signerAddressOf(after)];
  if (was !== is) log.warn(`answers are signed by ${is} instead of ${was}`);
  if (signers.isOther(after.config, env)) log.warn('the signing key stays the same until the service is restarted');
}
