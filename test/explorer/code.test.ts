import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { verifyResponse } from '../../verify/index.ts';
import { oneApi, type RunningService, serviceFor, startTestService } from '../support/service.ts';
import { startUpstream, type Upstream, upstreamFor } from '../support/upstream.ts';
import { browserFor, launch, skip, visit } from './browser.ts';

const run = promisify(execFile);
const SYMBOL = `it's "$HOME" \`id\` \\ & ü`;
const parameters = [{ name: 'symbol', required: true }];
const KEY = 'k'.repeat(32);

async function open(t: TestContext, openapi: unknown) {
  const upstream = await upstreamFor(t);
  upstream.on('*', (request, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ asked: request.url }));
  });
  const auth = { type: 'apiKey', keys: [KEY] };
  const endpoints = { price: { parameters } };
  const settings = { explorer: true, openapi };
  const service = await serviceFor(t, oneApi(upstream.url, endpoints, { settings, api: { auth } }));
  const { page } = await visit(await browserFor(t), service.url);
  return { service, page };
}

describe('the explorer page, for those who go on without it', { skip }, () => {
  it('shows a request as a command that a shell runs, without the key', async (t) => {
    const { service, page } = await open(t, false);
    await page.goto(`${service.url}/#${Object.values(service.ids)[0]}`);
    await page.getByLabel('symbol').fill(SYMBOL);
    await page.getByLabel('X-Api-Key').fill(KEY);
    await page.getByText('As a curl command').click();
    const command = (await page.locator('.command code').first().textContent()) ?? '';
    assert.ok(!command.includes(KEY));
    assert.match(command, /^curl -sS 'http:\/\/127\.0\.0\.1:\d+\/endpoints\/0x[0-9a-f]{64}' \\\n {2}-H /);
    const { stdout } = await run('bash', ['-c', command], { env: { ...process.env, X_API_KEY: KEY } });
    const answer = JSON.parse(stdout);
    assert.ok(verifyResponse(answer, { node: service.signer.address }).ok);
    assert.equal(new URL(answer.rawData.asked, 'http://x').searchParams.get('symbol'), SYMBOL);
    assert.equal(await page.getByRole('link', { name: 'openapi.json' }).count(), 0);
  });

  it('leads to the description for programs, where there is one', async (t) => {
    const { service, page } = await open(t, { title: 'Prices', description: 'Of all <b>assets</b>.' });
    await page.goto(service.url);
    await page.getByRole('heading', { name: 'Prices', level: 1 }).waitFor();
    await page.getByText('Of all <b>assets</b>.', { exact: true }).waitFor();
    const href = await page.getByRole('link', { name: 'openapi.json' }).getAttribute('href');
    const document = JSON.parse(await (await fetch(String(href))).text());
    assert.equal(document.info.title, 'Prices');
  });
});

const ROOT = join(import.meta.dirname, '../..');
const price = { type: 'int256', path: '$.price', times: '1e18' };

/** What the code of each endpoint prints. */
const PRINTED: Readonly<Record<string, string>> = {
  price: '-2064250000000000000000n',
  open: '2064n',
  raw: `{ asked: '/raw' }`,
  streamed: `{ asked: '/streamed' }`,
  later: `{ asked: '/later' }`,
};

describe('JavaScript that the explorer page shows', { skip }, () => {
  let upstream: Upstream;
  let service: RunningService;
  let browser: Browser;
  let page: Page;
  let folder: string;
  const env = { ...process.env, X_API_KEY: KEY };

  before(async () => {
    mkdirSync(join(ROOT, '.cache'), { recursive: true });
    folder = mkdtempSync(join(ROOT, '.cache', 'code-'));
    upstream = await startUpstream();
    upstream.on('*', ({ url = '' }, response) => {
      const { pathname, searchParams } = new URL(url, 'http://x');
      const known = searchParams.get('symbol') === SYMBOL ? { price: -2064.25 } : { price: 2064.25, asked: pathname };
      if (pathname === '/failing') response.writeHead(500).end();
      else
        response
          .setHeader('Content-Type', 'application/json')
          .end(JSON.stringify(pathname === '/price' ? known : { asked: pathname }));
    });
    const endpoints = {
      price: { path: '/price', parameters, encoding: price, receipt: true },
      open: { path: '/price', parameters: [], encoding: { type: '*', path: '$.price' } },
      raw: { path: '/raw' },
      streamed: { path: '/streamed', mode: 'stream' },
      later: { path: '/later', mode: 'async' },
      failing: { path: '/failing' },
    };
    const auth = { type: 'apiKey', keys: [KEY] };
    service = await startTestService(oneApi(upstream.url, endpoints, { settings: { explorer: true }, api: { auth } }));
    browser = await launch();
    ({ page } = await visit(browser, service.url));
  });
  after(async () => {
    await browser?.close();
    await service?.stop();
    await upstream?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const codeOf = async (endpoint: string) => {
    await page.goto('about:blank');
    await page.goto(`${service.url}/#${service.ids[`api/${endpoint}`]}`);
    if (endpoint === 'price') await page.getByLabel('symbol').fill(SYMBOL);
    if (endpoint === 'open') await page.getByLabel('_type').fill('uint256');
    await page.getByLabel('X-Api-Key').fill(KEY);
    const details = page.locator('.command details', { hasText: 'In JavaScript' });
    await details.locator('summary').click();
    const text = (await details.locator('code').textContent()) ?? '';
    assert.ok(!text.includes(KEY));
    return text;
  };
  /** Runs the code of these endpoints, one after the other, in one process. */
  const javascript = async (endpoints: readonly string[], change = (text: string) => text) => {
    const files: string[] = [];
    for (const endpoint of endpoints) {
      files.push(join(folder, `${endpoint}.mjs`));
      writeFileSync(files.at(-1) ?? '', change(await codeOf(endpoint)));
    }
    const all = join(folder, 'all.mjs');
    writeFileSync(all, files.map((file) => `await import(${JSON.stringify(file)});\n`).join(''));
    return run(process.execPath, ['--import', 'tsx', all], { cwd: ROOT, env });
  };

  it('asks, checks and prints the value', async () => {
    const printed = Object.values(PRINTED).map((text) => `${text}\n`);
    assert.equal((await javascript(Object.keys(PRINTED))).stdout, printed.join(''));
  });

  it('refuses an answer that another address has signed', async () => {
    const other = `0x${'12'.repeat(20)}`;
    const forged = javascript(['raw'], (text) => text.replace(/node: "0x\w{40}"/, `node: "${other}"`));
    await assert.rejects(forged, /Error: the response is signed by|Error: .*0x1212/);
  });

  it('tells the request ID where the upstream fails', async () => {
    await assert.rejects(javascript(['failing']), /502 \{"error":"API call failed".*\} \(request [-\w]{8,}\)/);
  });
});
