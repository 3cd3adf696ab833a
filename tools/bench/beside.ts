import { hooked, measuredConfig } from './configs.ts';
import { Bench, type Measured, print, type Service } from './rounds.ts';
import { comparison } from './table.ts';

/** This build beside another one, in turns. `tools/bench/README.md` says how to read what it prints. */

const [other, requests = '3000', rounds = '10'] = process.argv.slice(2);
if (other === undefined) throw new Error('name the dist folder of the other build');

await Bench.run({ requests: Number(requests), rounds: Number(rounds) }, async (bench) => {
  const upstream = await bench.startHelper('upstream');
  for (const [kind, settings] of Object.entries({ none: {}, 'six hooks': hooked() })) {
    const config = measuredConfig(upstream.url, settings);
    const before = await bench.startService(`before-${kind}`, config, { build: other });
    const now = await bench.startService(`now-${kind}`, config);
    for (const endpoint of ['encoded', 'raw', 'cached', 'receipt']) {
      const measured = (when: string, server: Service): Measured => {
        return { name: `${endpoint}, ${kind}: ${when}`, server, url: server.urls[endpoint] ?? '' };
      };
      print(comparison([await bench.measure([measured('before', before), measured('now', now)])]));
    }
  }
});
