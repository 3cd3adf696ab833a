import { createSecureContext } from 'node:tls';
import { errorText, pemText } from '../../lib/text.ts';
import { closedObject } from '../../plugins-sdk/config.ts';
import { type Static, Type } from '../../plugins-sdk/index.ts';

const text = (description: string) => Type.Optional(Type.String({ minLength: 1, description }));
const pem = (description: string) => Type.Optional(Type.String({ pattern: '-----BEGIN ', description }));
const urls = (description: string) => {
  const form = 'redis://host:port, or rediss:// for TLS';
  const url = Type.String({ pattern: '^rediss?://[^\\s/?#]+/?$', description: form });
  return Type.Array(url, { minItems: 1, description });
};

const TlsSchema = closedObject({
  ca: pem('Certificates of those who sign its certificate, PEM; default those of Node.js'),
  cert: pem('Certificate that is shown to the server, PEM'),
  key: pem('Key of that certificate, PEM'),
  servername: text('Name in its certificate; default the host'),
});

const SentinelSchema = closedObject(
  {
    name: Type.String({ minLength: 1, description: 'Name of the primary' }),
    urls: urls('The Sentinels'),
    username: text('User of the Sentinels; default that of the URL'),
    password: text('Password of the Sentinels; default that of the URL'),
  },
  'A primary that Sentinels watch, in place of url',
);

export const RedisSchema = closedObject({
  url: Type.Optional(
    Type.String({
      pattern: '^rediss?://[^\\s/?#]+(?:/[0-9]{0,5})?$',
      description: 'redis://host:port/database, or rediss:// for TLS',
    }),
  ),
  urls: Type.Optional(urls('Some nodes of a Cluster, in place of url')),
  sentinel: Type.Optional(SentinelSchema),
  prefix: Type.Optional(Type.String({ description: 'Prefix of all keys; default sdp:' })),
  tls: Type.Optional(
    Type.Union([Type.Literal(true), TlsSchema], { description: 'TLS as with rediss://, and its certificates' }),
  ),
  username: text('User of the ACL; default that of the URL'),
  password: text('Password; default that of the URL'),
});
export type RedisConfig = Static<typeof RedisSchema>;

/** The user of a server. */
interface Credentials {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** The config key that names the target: `url` one server, `urls` a cluster, `sentinel` a primary that Sentinels watch. */
export type Kind = 'url' | 'urls' | 'sentinel';

/** The configured server, cluster or primary. */
export interface RedisTarget extends Credentials {
  readonly kind: Kind;
  /** The server, nodes of the cluster, or the Sentinels. */
  readonly places: readonly { readonly host: string; readonly port: number }[];
  readonly db: number;
  readonly tls: Static<typeof TlsSchema> | undefined;
  readonly sentinel: (Credentials & { readonly name: string }) | undefined;
}

const PORT = 6379;
const SENTINEL_PORT = 26_379;

/** Returns the certificates and keys in the form that Node.js reads. */
function readable(tls: RedisConfig['tls']): Static<typeof TlsSchema> {
  const texts = tls === true ? {} : (tls ?? {});
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, pemText(text)]));
}

/** Returns the URLs, each with its config path. */
function urlsIn({ url, urls, sentinel }: RedisConfig): [path: string, url: string][] {
  if (url !== undefined) return [['url', url]];
  const path = urls === undefined ? 'sentinel.urls' : 'urls';
  return (urls ?? sentinel?.urls ?? []).map((text, index) => [`${path}[${index}]`, text]);
}

/** Returns the configured credentials, else those of the URL. @throws Error if the URL's cannot be decoded. */
function credentialsIn(config: Partial<Credentials>, url: URL | undefined): Credentials {
  const { username = '', password = '' } = url ?? {};
  return {
    username: config.username ?? (decodeURIComponent(username) || undefined),
    password: config.password ?? (decodeURIComponent(password) || undefined),
  };
}

/** Reads the target from a config. @throws Error if a URL cannot be parsed. */
export function targetOf(config: RedisConfig): RedisTarget {
  const { urls, sentinel, tls } = config;
  const parsed = urlsIn(config).map(([, text]) => new URL(text));
  const [first] = parsed;
  const usual = sentinel === undefined ? PORT : SENTINEL_PORT;
  return {
    ...credentialsIn(config, sentinel === undefined ? first : undefined),
    kind: sentinel === undefined ? (urls === undefined ? 'url' : 'urls') : 'sentinel',
    places: parsed.map(({ hostname, port }) => ({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || usual),
    })),
    db: Number(first?.pathname.slice(1)),
    tls: tls === undefined && first?.protocol === 'redis:' ? undefined : readable(tls),
    sentinel: sentinel && { name: sentinel.name, ...credentialsIn(sentinel, first) },
  };
}

/** Returns the first fault of a config that fits the schema: its path below `settings.state`, and a message. */
export function problemOf(config: RedisConfig): readonly [path: string, message: string] | undefined {
  const { url, urls, sentinel } = config;
  if ([url, urls, sentinel].filter((given) => given !== undefined).length !== 1)
    return ['', 'must have one of "url", "urls" and "sentinel"'];
  const begins = new Set<string>();
  for (const [path, text] of urlsIn(config)) {
    try {
      const { protocol, username, password } = new URL(text);
      begins.add([protocol, decodeURIComponent(username), decodeURIComponent(password)].join(' '));
    } catch {
      return [path, 'is no valid URL'];
    }
    if (begins.size > 1) return [path, 'must have the scheme, user and password of the first one'];
  }
  try {
    createSecureContext(readable(config.tls));
    return undefined;
  } catch (error) {
    return ['tls', `cannot be used: ${errorText(error)}`];
  }
}

/** Names a target in messages: its servers, or the Sentinels. */
export function nameOf({ places, sentinel }: Pick<RedisTarget, 'places'> & Partial<RedisTarget>): string {
  const names = places.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ');
  return sentinel === undefined ? `redis at ${names}` : `redis "${sentinel.name}" of the Sentinels at ${names}`;
}
