/**
 * Keeps the state of all replicas in PostgreSQL: payments, async requests, limits and cached answers. Each change is a commit
 * of a few milliseconds. Choose it if you already have a database that is well run and backed up, or if not even the loss of a
 * whole machine may bring a redeemed payment back. With `synchronous_commit` on (the default) changes survive a crash of the
 * server, and with `synchronous_standby_names` also a failover. If neither matters to you, Redis takes a tenth of the time.
 *
 * Needs `npm install pg@8`, and a user that may create tables. Limits are in an unlogged table, which is empty after a crash:
 * clients then have their full limits again.
 *
 * ```yaml
 * settings:
 *   plugins:
 *     - source: ./state-postgres.ts
 *   state:
 *     type: postgres
 *     url: ${DATABASE_URL}
 * ```
 */
import { definePlugin, Type } from 'signed-data-proxy/plugins-sdk';
import { randomId, type StateArea, type StateEngine, stateEngine, takeFrom } from 'signed-data-proxy/plugins-sdk/state';

/** Creates the tables, under a lock because several replicas may start at once. */
const TABLES = `
  SELECT pg_advisory_xact_lock(7307);
  CREATE TABLE IF NOT EXISTS sdp_values (key text PRIMARY KEY, value bytea, expires timestamptz NOT NULL, mark text);
  CREATE UNLOGGED TABLE IF NOT EXISTS sdp_buckets
    (key text PRIMARY KEY, used float8 NOT NULL, granted float8 NOT NULL, at timestamptz NOT NULL, expires timestamptz NOT NULL)`;

const PURGE = `
  DELETE FROM sdp_values WHERE expires <= clock_timestamp() OR value IS NULL;
  DELETE FROM sdp_buckets WHERE expires <= clock_timestamp()`;

const GET = 'SELECT value FROM sdp_values WHERE key = $1 AND expires > clock_timestamp()';

/**
 * Always writes the row, and returns its value afterwards. A row that the statement locks is the newest one. A row that it only
 * reads could be older than the one that the condition was checked against. The mark says whether this call set the value.
 */
const SWAP = `
  INSERT INTO sdp_values AS old (key, value, expires, mark)
  VALUES ($1, CASE WHEN $2::bytea IS NULL THEN $3::bytea END,
    COALESCE(clock_timestamp() + $4::float8 * interval '1 ms', 'infinity'), CASE WHEN $2 IS NULL THEN $6::text END)
  ON CONFLICT (key) DO UPDATE SET (value, expires, mark) = (
    SELECT CASE WHEN fits THEN $3 ELSE was END,
      CASE WHEN NOT fits THEN old.expires
        WHEN $5::boolean AND was IS NOT NULL THEN greatest(excluded.expires, old.expires)
        ELSE excluded.expires END,
      CASE WHEN fits THEN $6 ELSE old.mark END
    FROM (SELECT CASE WHEN old.expires > clock_timestamp() THEN old.value END) AS live (was),
      LATERAL (SELECT was IS NOT DISTINCT FROM $2) AS compared (fits))
  RETURNING value, mark = $6 AS done`;

/** Takes tokens from a bucket. For a full bucket, the caller has computed the tokens used ($2) and granted ($3). */
const TAKE = `
  INSERT INTO sdp_buckets AS old (key, used, granted, at, expires)
  VALUES ($1, $2::float8, $3::float8, clock_timestamp(),
    clock_timestamp() + $2 * $5::float8 / $4::float8 * interval '1 ms')
  ON CONFLICT (key) DO UPDATE SET (used, granted, at, expires) = (
    SELECT owed + taken, taken, time, time + (owed + taken) * $5 / $4 * interval '1 ms'
    FROM (SELECT clock_timestamp()) AS clock (time),
      LATERAL (SELECT greatest(extract(epoch FROM time - old.at)::float8 * 1000, 0)) AS past (elapsed),
      LATERAL (SELECT greatest(old.used - elapsed * $4 / $5, 0) + $7::float8) AS debts (owed),
      LATERAL (SELECT least($6::float8, greatest(floor($4 - owed + 1e-6), 0))) AS grants (taken))
  RETURNING used, granted`;

/** Milliseconds between two removals of expired rows. */
const PURGE_EVERY = 60_000;

const schema = Type.Object(
  { url: Type.String({ pattern: '^postgres(?:ql)?://', description: 'URL of the database' }) },
  { additionalProperties: false },
);

type Rows = readonly { readonly [column: string]: unknown }[];
type Query = (text: string, values?: unknown[]) => Promise<{ readonly rows: Rows }>;

const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text));
const storedText = (value: unknown) => (Buffer.isBuffer(value) ? value.toString() : undefined);

function areaOf(name: string, query: Query): StateArea {
  const keyOf = (key: string) => `${encodeURIComponent(name)}:${key}`;
  return {
    get: async (key) => storedText((await query(GET, [keyOf(key)])).rows[0]?.value),
    async compareAndSet(key, expected, next, { ttl = Number.POSITIVE_INFINITY, keepLonger = false } = {}) {
      const time = Number.isFinite(ttl) ? ttl : null;
      const { rows } = await query(SWAP, [keyOf(key), bytes(expected), bytes(next), time, keepLonger, randomId()]);
      if (rows[0]?.done === true) return undefined;
      const value = storedText(rows[0]?.value);
      return value === undefined ? {} : { value };
    },
    async takeTokens(key, limit, n = 1, debt = 0) {
      const { max, window } = limit;
      const full = takeFrom(undefined, limit, { n, debt, now: 0 });
      const values = [keyOf(key), full.bucket.used, full.granted, max, window, n, debt];
      const row = (await query(TAKE, values)).rows[0];
      const granted = Number(row?.granted);
      const left = max - Number(row?.used);
      const wait = Math.max(Math.ceil(((1 - left) * window) / max), 0);
      return { granted, left, retryAfter: granted === n ? 0 : wait };
    },
  };
}

/** Creates the tables, and checks that commits survive a crash. @returns the doubts if they do not. */
async function prepare(query: Query): Promise<string[]> {
  await query(TABLES);
  const { rows } = await query(`SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit')`);
  return rows
    .filter(({ setting }) => setting === 'off')
    .map(
      ({ name }) => `settings.state: ${name} of the database is off, so that a crash may take commits: set it to on`,
    );
}

function open({ url }: { readonly url: string }): StateEngine {
  let query: Query = () => Promise.reject(new Error('the database is not connected'));
  let stop = async () => {};
  let doubts: readonly string[] = [];
  return {
    async start() {
      const { default: pg } = await import('pg').catch(() => {
        throw new Error('settings.state needs a package that is not installed: npm install pg@8');
      });
      const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 3000, query_timeout: 3000 });
      // An idle connection broke. The next query takes another one.
      pool.on('error', () => {});
      query = (text, values) => pool.query(text, values);
      const timer = setInterval(() => query(PURGE).catch(() => {}), PURGE_EVERY).unref();
      stop = async () => {
        stop = async () => {};
        clearInterval(timer);
        await pool.end();
      };
      try {
        doubts = await prepare(query);
      } catch (error) {
        await stop();
        const { message, code } = Object(error);
        throw new Error(`settings.state: the database cannot be used: ${message || code}`);
      }
    },
    doubts: () => doubts,
    area: (name) => areaOf(name, (text, values) => query(text, values)),
    close: () => stop(),
  };
}

export default definePlugin({
  name: 'state-postgres',
  engines: { postgres: stateEngine({ schema, open }) },
  setup: () => ({}),
});
