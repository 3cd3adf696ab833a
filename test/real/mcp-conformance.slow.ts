/** The public conformance suites of MCP, unmodified, against a service; they want Node 22. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { installed } from '../../tools/scripts/installed.ts';
import { withNode } from '../../tools/scripts/nodes.ts';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';

/** Scenarios, and the checks of them that cannot hold, with the reason. */
type Scenarios = Readonly<Record<string, Readonly<Record<string, string>>>>;

const BOTH: Scenarios = {
  'server-initialize': {},
  ping: {},
  'tools-list': {},
  'tools-call-error': {},
  'dns-rebinding-protection': {},
};
const needs = 'a tool that needs something of its client; none of the service does';
const only = 'there are tools only';
const SUITES: Readonly<Record<string, { readonly folder: string; readonly fits: Scenarios }>> = {
  '0.1.16': { folder: '@modelcontextprotocol/conformance', fits: BOTH },
  '0.2.0-alpha.12': {
    folder: 'conformance-next',
    fits: {
      ...BOTH,
      'server-session-lifecycle': {},
      'server-stateless': {
        'sep-2575-server-rejects-undeclared-capability': needs,
        'sep-2575-missing-capability-http-400': needs,
      },
      caching: {
        'sep-2549-prompts-list-caching-hints': only,
        'sep-2549-resources-list-caching-hints': only,
        'sep-2549-resources-templates-list-caching-hints': only,
      },
      'http-header-validation': {},
      'input-required-result-unsupported-methods': {},
    },
  },
};
/** Scenarios that do not fit, by the beginning of their names. */
const UNFIT: Readonly<Record<string, string>> = {
  'tools-call-':
    'want tools that answer with fixed texts, images or questions to the client; a tool here gives a signed answer',
  'resources-': only,
  'prompts-': only,
  'sep-2164-resource': only,
  'sep-2640-skills': only,
  'logging-': 'there are no messages beside the answer',
  'completion-': only,
  'elicitation-': 'a tool asks its client for nothing',
  'input-required-': 'a tool asks its client for nothing',
  'server-sse-': 'there are no sessions, and no streams that can be taken up again',
  'json-schema-2020-12': 'wants a tool with $defs; schemas of parameters hold none',
  'http-custom-header': 'wants a tool with x-mcp-header; no parameter goes into a header',
  'tasks-': 'there are no tasks',
};

describe('the conformance suites of MCP', async () => {
  const suites = installed('tools/scripts/mcp-conformance');
  const endpoints = { error_handling: {}, logging_tool: {}, streaming_elicitation: {}, price: {} };
  const answers = { '*': faults.json({ price: 7 }), '/error_handling': faults.serverError() };
  const { service } = await served(suite, endpoints, { answers, api: { name: 'test' }, settings: { mcp: true } });

  const said = async (folder: string, ...args: string[]) => {
    const program = join(suites, 'node_modules', folder, 'dist/index.js');
    const child = spawn('node', [program, ...args], { env: { ...withNode(22), NO_COLOR: '1' } });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
    const [code] = await once(child, 'close');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours of a terminal.
    return { code, text: text.replace(/\u001b\[\d+m/g, '') };
  };

  for (const [version, { folder, fits }] of Object.entries(SUITES)) {
    it(`${version}: each scenario fits, or does not for a reason`, async () => {
      const { text } = await said(folder, 'list');
      const names = [...(text.split('\n\n')[0] ?? '').matchAll(/^ +- (\S+)/gm)].map(([, name = '']) => name);
      assert.ok(names.length > 30);
      const reasonOf = (name: string) => Object.keys(UNFIT).find((beginning) => name.startsWith(beginning));
      assert.deepEqual(
        names.filter((name) => !(name in fits) && reasonOf(name) === undefined),
        [],
      );
    });

    for (const [scenario, unmet] of Object.entries(fits)) {
      it(`${version}: ${scenario}`, async () => {
        const { code, text } = await said(folder, 'server', '--url', `${service.url}/mcp`, '--scenario', scenario);
        const failed = [...text.matchAll(/\[([\w-]+) *\] FAILURE/g)].map(([, check]) => check);
        assert.deepEqual([failed, code], [Object.keys(unmet), failed.length > 0 ? 1 : 0], text.slice(-2000));
      });
    }
  }
});
