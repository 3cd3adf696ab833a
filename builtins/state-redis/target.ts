import { createSecureContext } from 'node:tls';
import { pemText } from '../../lib/text/pem.ts';
import { closedObject } from '../../plugins-sdk/config.ts';
import { type Static, Type } from '../../plugins-sdk/index.ts';

const pem = (description: string) => Type.Optional(Type.String({ pattern: '-----BEGIN ', description }));

const TlsSchema = closedObject({
  ca: pem('Certificates of those who sign its certificate, PEM; default those of Node.js'),
  cert: pem('Certificate that is shown to the server, PEM'),
  key: pem('Key of that certificate, PEM'),
  servername: Type.Optional(Type.String({ minLength: 1, description: 'Name in its certificate; default the host' })),
});

export const RedisSchema = closedObject({
  url: Type.String({
    pattern: '^rediss?://[^\\s/?#]+(?:/[0-9]{0,5})?$',
    description: 'redis://host:port/database, or rediss:// for TLS',
  }),
  prefix: Type.Optional(Type.String({ description: 'Begin of all keys; default sdp:' })),
  tls: Type.Optional(
    Type.Union([Type.Literal(true), TlsSchema], { description: 'TLS as with rediss://, and its certificates' }),
  ),
  username: Type.Optional(Type.String({ minLength: 1, description: 'User of the ACL; default that of the URL' })),
  password: Type.Optional(Type.String({ minLength: 1, description: 'Password; default that of the URL' })),
});
export type RedisConfig = Static<typeof RedisSchema>;

/** A server, as the config names it. */
export interface RedisTarget {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  readonly username?: string;
  readonly password?: string;
  readonly tls?: Static<typeof TlsSchema>;
}

const PORT = 6379;

/** Certificates and keys as they are read. */
function readable(tls: RedisConfig['tls']): Static<typeof TlsSchema> {
  const texts = tls === true ? {} : (tls ?? {});
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, pemText(text)]));
}

/** @throws Error when the URL cannot be parsed. */
export function targetOf({ url, tls, ...own }: RedisConfig): RedisTarget {
  const parsed = new URL(url);
  const username = own.username ?? decodeURIComponent(parsed.username);
  const password = own.password ?? decodeURIComponent(parsed.password);
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, ''),
    port: Number(parsed.port || PORT),
    db: Number(parsed.pathname.slice(1)),
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...(tls === undefined && parsed.protocol === 'redis:' ? {} : { tls: readable(tls) }),
  };
}

/** What is wrong with a config of the right shape: where, and what. */
export function problemOf(config: RedisConfig): readonly [path: string, message: string] | undefined {
  try {
    targetOf(config);
  } catch {
    return ['url', 'is no valid URL'];
  }
  try {
    createSecureContext(readable(config.tls));
    return undefined;
  } catch (error) {
    return ['tls', `cannot be used: ${error instanceof Error ? error.message : String(error)}`];
  }
}

/** The server as errors name it. */
export function nameOf({ host, port }: RedisTarget): string {
  return `redis at ${host.includes(':') ? `[${host}]` : host}:${port}`;
}
