import { StateUnavailable } from '../../plugins-sdk/state.ts';
import type { Kind } from './target.ts';

/** The settings of a server by which it could lose state, such as payments. */
export interface Examination {
  /** Settings by which it loses data. */
  readonly doubts: readonly string[];
  /** Settings by which it loses data in rare cases. */
  readonly warnings: readonly string[];
}

/** The answer of a server to INFO, by its fields. */
type Fields = ReadonlyMap<string, string>;

/** The oldest version with all commands that the scripts use. */
const OLDEST = [6, 2] as const;

/**
 * Examines a server's version, role and durability.
 * @param name of the server.
 * @param kind of target that it belongs to.
 * @param info its answer to INFO.
 * @param appendfsync as configured; `undefined` if it cannot be read.
 * @throws StateUnavailable if the server cannot be used.
 */
export function examine(name: string, kind: Kind, info: string, appendfsync: string | undefined): Examination {
  const fields = new Map([...info.matchAll(/^(\w+):(.*)$/gm)].map(([, field = '', value = '']) => [field, value]));
  const refusal = refusalOf(fields, kind);
  if (refusal !== undefined) throw new StateUnavailable(`${name} ${refusal}`);
  const said = (risks: Iterable<string>) => [...risks].map((risk) => `settings.state: ${risk}`);
  const of = `of ${name}`;
  return { doubts: said(doubtsIn(fields, appendfsync, of)), warnings: said(warningsIn(fields, appendfsync, of)) };
}

const isLogged = (fields: Fields) => fields.get('aof_enabled') === '1';

function* doubtsIn(fields: Fields, appendfsync: string | undefined, of: string): Iterable<string> {
  const policy = fields.get('maxmemory_policy') ?? 'noeviction';
  if (policy !== 'noeviction')
    yield `maxmemory-policy ${of} is ${policy}, so that it may drop what it keeps: set "maxmemory-policy noeviction"`;
  if (!isLogged(fields))
    yield `appendonly ${of} is off, so that a restart loses what was written last: set "appendonly yes" and "appendfsync always"`;
  else if (appendfsync === 'no')
    yield `appendfsync ${of} is no, so that a power loss takes what was written last: set "appendfsync always"`;
}

function* warningsIn(fields: Fields, appendfsync: string | undefined, of: string): Iterable<string> {
  if (isLogged(fields) && appendfsync === 'everysec')
    yield `appendfsync ${of} is everysec, so that a power loss may take the last second: set "appendfsync always" where that matters`;
  if (isLogged(fields) && appendfsync === undefined)
    yield `appendfsync ${of} cannot be read: allow its user CONFIG GET, or make sure of "appendfsync always"`;
  // The field exists only while a minimum is set.
  if (fields.get('connected_slaves') !== '0' && !fields.has('min_slaves_good_slaves'))
    yield `min-replicas-to-write ${of} is 0, so that a failover may take what no replica has yet: set "min-replicas-to-write 1"`;
}

function refusalOf(fields: Fields, kind: Kind): string | undefined {
  const version = fields.get('redis_version');
  if (version === undefined) return 'is no Redis and no Valkey';
  // Valkey gives the Redis version that it is compatible with.
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
  if (isOld && !fields.has('valkey_version'))
    return `has version ${version}: Redis ${OLDEST.join('.')} or later, or Valkey, is needed`;
  if (fields.get('redis_mode') === 'sentinel') return `is a Sentinel: set sentinel.urls in place of ${kind}`;
  if (kind !== 'urls' && fields.get('cluster_enabled') === '1')
    return `is a node of a cluster: set urls in place of ${kind}`;
  if (fields.get('role') !== 'master')
    return kind === 'url' ? 'is a replica: url must lead to the primary' : 'is a replica, and no primary any more';
  if (fields.get('loading') === '1') return 'is still loading its data: try again once it has';
  return undefined;
}
