/** Clients that want the same of a hanging upstream cost one call, and all learn its end. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { oneApi } from '../support/answers.ts';
import { assertRefused, endpointUrl, eventually, postText } from '../support/http.ts';
import { acts, pluginFiles, puppetFile } from '../support/plugin-files.ts';
import { serviceFor } from '../support/service.ts';
import { upstreamFor } from '../support/upstream.ts';

const CLIENTS = 400;
/** So many come at once. */
const WAVE = 50;

it(`${CLIENTS} clients that want the same of an upstream that hangs cost one call, and all are told how it ended`, async (t) => {
  const upstream = await upstreamFor(t);
  let fail = (): void => undefined;
  upstream.on('/e', (_, response) => {
    fail = () => void response.destroy();
  });
  const { files, plugins } = pluginFiles({ arrivals: puppetFile('arrivals', ['onHttpRequest', 'onError']) });
  const api = { timeout: 120_000, cache: { maxAge: 60_000 } };
  const service = await serviceFor(t, oneApi(upstream.url, { e: {} }, { api, settings: { plugins } }), { files });
  let arrived = 0;
  acts.set('arrivals onHttpRequest', () => {
    arrived += 1;
  });
  let told = 0;
  acts.set('arrivals onError', ({ stage, status }) => {
    if (stage === 'callApi' && status === 502) told += 1;
  });
  const url = endpointUrl(service, 'api/e');
  const answers: Promise<Response>[] = [];
  while (answers.length < CLIENTS) {
    answers.push(...Array.from({ length: WAVE }, () => postText(url, '{}')));
    await eventually(() => arrived === answers.length || undefined, `${answers.length} clients`);
  }
  fail();
  for (const answer of answers) await assertRefused(await answer, 502, 'API call failed');
  assert.equal(upstream.requests.length, 1);
  await eventually(() => told === CLIENTS || undefined, 'all errors');
});
