/** Puts real keys into the cache where there are none: a minute of work that `npm run test:slow` does by itself else. */
import { realKeys } from './keys.ts';

const started = performance.now();
const { client, public: publicKey, crs } = realKeys();
const seconds = Math.round((performance.now() - started) / 1000);
console.log(
  `client key ${client.length}, public key ${publicKey.length}, reference string ${crs.length} bytes: ${seconds} s`,
);
