import { join } from 'node:path';
import { measuredConfig } from './configs.ts';
import { Bench, dist, OTHERS, print, printHeader, verified } from './pairs.ts';

/** This build beside another one, in pairs. `bench/README.md` says how to read what it prints. */

const [other, seconds = '2', rounds = '10'] = process.argv.slice(2);
if (other === undefined) throw new Error('name the dist folder of the other build');

const headers = () => ({ 'content-type': 'application/json', 'x-api-key': 'benchmark-key-of-16' });

await Bench.run(Number(seconds), Number(rounds), async (bench) => {
  const upstream = await bench.start('upstream', OTHERS, [join(dist, 'bench/upstream.js')]);
  const hooks = { plugins: [{ source: join(dist, '../bench/six-hooks.mjs') }] };
  for (const [kind, settings] of Object.entries({ none: {}, 'six hooks': hooks })) {
    const config = measuredConfig(upstream.url, settings);
    const before = await bench.startService(`before-${kind}`, config, { build: other });
    const now = await bench.startService(`now-${kind}`, config);
    printHeader();
    for (const endpoint of ['encoded', 'raw', 'cached', 'receipt']) {
      const measured = (name: string, server: typeof now) => ({
        name: `${endpoint}, ${kind}: ${name}`,
        server,
        url: server.urls[endpoint] ?? '',
        headers,
      });
      await verified(measured('now', now));
      await bench.pair(measured('before', before), measured('now', now));
    }
  }
  print('');
});
