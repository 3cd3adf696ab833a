/** A reload takes the new config whole. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { assertRefused } from '../support/http.ts';
import { openRaw, requestHead } from '../support/raw-http.ts';
import { answered, idOf, postTo, reload, reloadable, startTagged, withTag } from '../support/reload.ts';
import { TEST_KEY } from '../support/service.ts';

const ANEW = 'info plugins were set up anew; changes of their code need a restart';
const WARNING = 'warn plugin "tagged" can change what gets signed (onAfterApiCall)';

const { upstream, config } = await reloadable();
const [A = '', B = '', C = ''] = ['/a', '/b', '/c'].map((path) => idOf(upstream.url, path));

describe('a reload of the config', () => {
  it('serves what is new, 404 for what is gone, and logs the difference', async (t) => {
    const service = await startTagged(t, config({ a: {}, b: {} }));
    assert.deepEqual(service.ids, { 'api/a': A, 'api/b': B });
    const lines = ['info config reloaded', `info + api/c ${C}`, `info = api/b ${B}`, `info - api/a ${A}`];
    assert.deepEqual(await reload(service, config({ c: {}, b: {} })), { done: true, lines });
    assert.deepEqual(await answered(await postTo(service, C)), { from: 'c' });
    assert.deepEqual(await answered(await postTo(service, B)), { from: 'b' });
    await assertRefused(await postTo(service, A), 404, 'Endpoint not found');
  });

  it('of a file that has not changed says so', async (t) => {
    const service = await startTagged(t, config({ a: {}, b: {} }));
    const lines = ['info config reloaded', `info = api/a ${A}`, `info = api/b ${B}`];
    assert.deepEqual(await reload(service), { done: true, lines });
  });

  it('takes what does not show in an ID: keys, and the variables as they are then', async (t) => {
    const keyed = (...keys: string[]) => config({ a: {} }, { api: { auth: { type: 'apiKey', keys } } });
    const service = await startTagged(t, keyed('the first of the keys'));
    const ask = (key: string) => service.post('api/a', {}, { 'X-Api-Key': key });
    const { lines } = await reload(service, keyed(`\${KEY}`), { KEY: 'a key out of a variable' });
    assert.deepEqual(lines, ['info config reloaded', `info = api/a ${service.ids['api/a']}`]);
    await assertRefused(await ask('the first of the keys'), 401, 'Invalid API key');
    assert.deepEqual(await answered(await ask('a key out of a variable')), { from: 'a' });
    await reload(service, undefined, { KEY: 'another key out of it' });
    await assertRefused(await ask('a key out of a variable'), 401, 'Invalid API key');
    assert.deepEqual(await answered(await ask('another key out of it')), { from: 'a' });
  });

  it('repeats the warnings of the config, and says that code of plugins needs a restart', async (t) => {
    const service = await startTagged(t, config({ a: {} }));
    const { lines } = await reload(service, config({ a: { mode: 'stream', cache: { maxAge: 1000 } } }, withTag('x')));
    assert.deepEqual(lines, [
      'warn apis[0].endpoints[0].cache: has no effect in stream mode',
      WARNING,
      'info config reloaded',
      `info = api/a ${A}`,
      ANEW,
    ]);
  });

  it('keeps connections', async (t) => {
    const service = await startTagged(t, config({ a: {} }));
    const connection = openRaw(service.url);
    const health = `${requestHead('GET /health', { Connection: 'keep-alive' })}\r\n`;
    connection.write(health);
    await connection.until((text) => text.includes('"ok"'));
    await reload(service, config({ b: {} }));
    connection.write(`${requestHead(`POST /endpoints/${service.ids['api/a']}`)}\r\n`);
    assert.match(await connection.closed, /"ok".*404.*Endpoint not found/s);
  });
});

describe('what needs a restart', () => {
  const same = ['info config reloaded', `info = api/a ${A}`];

  it('port and host: a warning each, and nothing changes, however often', async (t) => {
    const service = await startTagged(t, config({ a: {} }));
    const { url } = service;
    const port = 'warn server.port: stays 0 until the service is restarted';
    const host = 'warn server.host: stays 127.0.0.1 until the service is restarted';
    const moved = { server: { port: 4567, host: '127.0.0.2' } };
    assert.deepEqual((await reload(service, config({ a: {} }, moved))).lines, [...same, port, host]);
    assert.deepEqual((await reload(service)).lines, [...same, port, host]);
    assert.deepEqual((await reload(service, config({ a: {} }, { server: { port: 4568 } }))).lines, [...same, port]);
    assert.deepEqual((await reload(service, config({ a: {} }, { server: { host: '127.0.0.1' } }))).lines, same);
    assert.equal(service.url, url);
    assert.equal((await fetch(`${url}/health`)).status, 200);
  });

  it('the signing key', async (t) => {
    const service = await startTagged(t, config({ a: {} }));
    const warned = [...same, 'warn the signing key stays the same until the service is restarted'];
    const lines = async (env: Record<string, string>) => (await reload(service, undefined, env)).lines;
    const phrase = 'test test test test test test test test test test test junk';
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: `0x${'11'.repeat(32)}` }), warned);
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: 'rubbish' }), warned);
    assert.deepEqual(await lines({ SERVICE_MNEMONIC: phrase }), same, 'the same key in other words');
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: TEST_KEY.slice(2) }), same);
    assert.deepEqual(await lines({ SERVICE_PRIVATE_KEY: '' }), same, 'who has started the service may have kept it');
    assert.deepEqual(await answered(await service.post('api/a')), { from: 'a' });
    assert.ok(!JSON.stringify(service.logs).includes('1111111111'));
  });
});
