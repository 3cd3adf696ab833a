import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { verifyResponse } from '../../verify/index.ts';
import { oneApi } from '../support/answers.ts';
import { startTestService } from '../support/service.ts';
import { startUpstream } from '../support/upstream.ts';
import { launch, skip, visit } from './browser.ts';

const run = promisify(execFile);
const KEY = 'k'.repeat(32);

async function open(t: TestContext, openapi: unknown) {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  upstream.on('*', (request, response) => {
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ asked: request.url }));
  });
  const auth = { type: 'apiKey', keys: [KEY] };
  const endpoints = { price: { path: '/price', parameters: [{ name: 'symbol', required: true }] } };
  const settings = { explorer: true, openapi };
  const service = await startTestService(oneApi(upstream.url, endpoints, { settings, api: { auth } }));
  t.after(() => service.stop());
  const browser = await launch();
  t.after(() => browser.close());
  const { page } = await visit(browser, service.url);
  return { service, page };
}

describe('the explorer page, for those who go on without it', { skip }, () => {
  it('shows a request as a command that a shell runs, without the key', async (t) => {
    const { service, page } = await open(t, false);
    await page.goto(`${service.url}/#${Object.values(service.ids)[0]}`);
    const symbol = `it's "$HOME" \`id\` \\ & ü`;
    await page.getByLabel('symbol').fill(symbol);
    await page.getByLabel('X-Api-Key').fill(KEY);
    await page.getByText('As a curl command').click();
    const command = (await page.locator('.command code').textContent()) ?? '';
    assert.ok(!command.includes(KEY));
    assert.match(command, /^curl -sS 'http:\/\/127\.0\.0\.1:\d+\/endpoints\/0x[0-9a-f]{64}' \\\n {2}-H /);
    const { stdout } = await run('bash', ['-c', command], { env: { ...process.env, X_API_KEY: KEY } });
    const answer = JSON.parse(stdout);
    assert.ok(verifyResponse(answer, { node: service.signer.address }).ok);
    assert.equal(new URL(answer.rawData.asked, 'http://x').searchParams.get('symbol'), symbol);
    assert.equal(await page.getByRole('link', { name: 'openapi.json' }).count(), 0);
  });

  it('leads to the description for programs, where there is one', async (t) => {
    const { service, page } = await open(t, { title: 'Prices' });
    await page.goto(service.url);
    const href = await page.getByRole('link', { name: 'openapi.json' }).getAttribute('href');
    const document = JSON.parse(await (await fetch(String(href))).text());
    assert.equal(document.info.title, 'Prices');
  });
});
