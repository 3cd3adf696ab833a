/** The example plugins import nothing but the SDK, and each is listed. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';

const folder = new URL('../../../examples/plugins/', import.meta.url);
const files = readdirSync(folder);
/** What some import besides the SDK: they are about it. */
const also: Readonly<Record<string, readonly string[]>> = {
  'audit-log.ts': ['node:fs/promises'],
  'jwt-auth.ts': ['jose'],
};

/** What docs/plugins.md says is short. */
const SHORT = ['upstream-hmac', 'median', 'webhook', 'jwt-auth', 'audit-log', 'cost-limits'];

/** What a module imports, re-exports, or loads at run time. */
function importsOf(source: string): string[] {
  const statements = source.matchAll(/\b(?:from|import|require)\s*\(?\s*(['"`])(.*?)\1/g);
  return [...statements].map(([, , specifier = '']) => specifier);
}

describe('the example plugins', () => {
  it('are all here', () => {
    assert.deepEqual(files.toSorted(), [
      'audit-log.ts',
      'batch.ts',
      'cost-limits.ts',
      'counter.ts',
      'external-cache.ts',
      'heartbeat.ts',
      'hmac-auth.ts',
      'ip-allow-list.ts',
      'jwt-auth.ts',
      'median.ts',
      'mode-jsonp.ts',
      'prices.ts',
      'remote-signer.ts',
      'request-logger.ts',
      'response-headers.ts',
      'slack-alerts.ts',
      'state-postgres.ts',
      'tariff.ts',
      'upstream-hmac.ts',
      'webhook.ts',
    ]);
  });

  for (const name of SHORT) {
    it(`${name} has at most 40 lines`, () => {
      const text = readFileSync(new URL(`${name}.ts`, folder), 'utf8').replace(/^ *\/\*\*.*?\*\/\n/gms, '');
      const lines = text.split('\n').filter((line) => line.trim() !== '' && !/^ *\/\//.test(line));
      assert.ok(lines.length <= 40, `${lines.length} lines`);
    });
  }

  for (const file of files) {
    it(`${file} imports the SDK, and nothing that it is not about`, () => {
      const whole = readFileSync(new URL(file, folder), 'utf8');
      // But for the client of the database that this one is about, which is loaded when it is needed.
      const source = file === 'state-postgres.ts' ? whole.replace("await import('pg')", '') : whole;
      const entry = /^signed-data-proxy\/plugins-sdk(?:\/(?:config|openapi|signing|state))?$/;
      const foreign = importsOf(source).filter((specifier) => !entry.test(specifier));
      assert.deepEqual(foreign, also[file] ?? []);
      // Nor does it reach for what an import would have given.
      assert.doesNotMatch(source, /\bimport\s*\(|(?<!\.)\brequire\b|getBuiltinModule|\bprocess\b/);
    });

    it(`${file} exports a factory or a definition, and the schema of its config if it has one`, async () => {
      const { default: plugin, configSchema, ...rest } = await import(new URL(file, folder).href);
      assert.equal(typeof (plugin.setup ?? plugin), 'function');
      if (configSchema !== undefined || !plugin.setup) assert.equal(configSchema.type, 'object');
      if (plugin.setup) assert.equal(plugin.configSchema, configSchema);
      assert.deepEqual(rest, {});
    });
  }

  it('a forbidden import would be seen', () => {
    const source = `import a from "./a.ts";\nexport * from 'b';\nimport 'c';\nawait import('d');\nconst e = require('e');`;
    assert.deepEqual(importsOf(source), ['./a.ts', 'b', 'c', 'd', 'e']);
  });
});
