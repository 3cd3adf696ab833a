import { Check } from 'typebox/value';
import { isLoopback } from '../../lib/http/target.ts';
import { checkAuthorities, error, stateKey, warning } from '../../plugins-sdk/config.ts';
import { definePlugin, Type } from '../../plugins-sdk/index.ts';
import { stateEngine } from '../../plugins-sdk/state.ts';
import { areaOn } from './area.ts';
import { Connection } from './connection.ts';
import { problemOf, RedisSchema, targetOf } from './target.ts';

const redis = stateEngine({
  schema: RedisSchema,
  open(config, { log }) {
    const connection = new Connection(targetOf(config), log);
    return {
      start: () => connection.open(),
      doubts: () => connection.doubts,
      area: (name) => areaOn(connection, `${config.prefix ?? 'sdp:'}${encodeURIComponent(name)}:`),
      close: async () => connection.close(),
    };
  },
});

const PLAIN = 'is without TLS: anyone on the way could change what is kept, payments included; use rediss or tls';

const OwnSchema = Type.Object({ ...RedisSchema.properties, type: Type.Literal('redis') });

/** Keeps state in a Redis or Valkey server, where all replicas of the service share it. */
export const stateRedis = definePlugin({
  name: 'state-redis',
  engines: { redis },
  check({ config }) {
    const state = stateKey.in(config);
    if (!Check(OwnSchema, state)) return [];
    const problem = problemOf(state);
    if (problem !== undefined) return [error(`settings.state${problem[0] && `.${problem[0]}`}`, problem[1])];
    const { kind, places, tls } = targetOf(state);
    if (tls !== undefined) return checkAuthorities('settings.state.tls.ca', tls.ca);
    return places.every(({ host }) => isLoopback(host)) ? [] : [warning(`settings.state.${kind}`, PLAIN)];
  },
  setup: () => ({}),
});
