/** Work that plugins leave to the background is waited for, and its failure is logged. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { background } from '../support/background.ts';
import { configText } from './service-config.ts';
import { postTo, startIn, TIME } from './started.ts';

async function start(t: TestContext, work: string) {
  const files = {
    'c.yaml': configText(undefined, 'settings: { plugins: [{ source: ./p.mjs }] }'),
    ...background(work),
  };
  const running = await startIn(t, files);
  const [, url] = await running.output(/listening on (http:\/\/\S+)/);
  const [, id] = await running.output(/prices\/eth (0x\w+)/);
  const ask = async () => {
    const response = await postTo(url, id);
    return `${response.status} ${await response.text()}`;
  };
  /** What the plugin and the service have said of it, in order. */
  const said = async () => {
    const { code, signal, stdout, stderr } = await running.ended;
    assert.deepEqual([code, signal, stderr], [0, null, '']);
    const lines = stdout.split('\n').map((line) => line.replace(new RegExp(`^${TIME} `), ''));
    return lines.filter((line) => /^INFO (?:stopping|config reloaded|audited|p stops)|^ERROR/.test(line));
  };
  return { ...running, ask, said };
}

describe('services.background', { concurrency: 3 }, () => {
  it('has a stop wait for work that goes on after the answer, and the plugin stops behind it', async (t) => {
    const work = `while (services.phase() !== 'stopping') await sleep(20);
      await sleep(1000);
      services.log.info('audited');`;
    const { ask, child, said } = await start(t, work);
    assert.equal(await ask(), '403 {"error":"no"}');
    child.kill('SIGTERM');
    assert.deepEqual(await said(), ['INFO stopping signal=SIGTERM', 'INFO audited', 'INFO p stops']);
  });

  it('has a config that was replaced wait, too', async (t) => {
    const work = `while (setups < 2) await sleep(20);
      await sleep(1000);
      services.log.info('audited');`;
    const { ask, child, output, said } = await start(t, work);
    await ask();
    child.kill('SIGHUP');
    await output(/p stops/);
    child.kill('SIGTERM');
    const [reloaded, ...rest] = await said();
    assert.match(String(reloaded), /^INFO config reloaded/);
    assert.deepEqual(rest, ['INFO audited', 'INFO p stops', 'INFO stopping signal=SIGTERM', 'INFO p stops']);
  });

  it('logs a rejection with the name of the plugin, and serves on', async (t) => {
    const { ask, child, output, said } = await start(t, `throw new Error('lost');`);
    await ask();
    await output(/ERROR.*lost/);
    assert.equal(await ask(), '403 {"error":"no"}');
    child.kill('SIGTERM');
    const lines = (await said()).filter((line) => line.startsWith('ERROR'));
    assert.equal(lines.length, 2);
    for (const line of lines) assert.match(line, /^ERROR plugin "p" failed in the background error="Error: lost/);
  });
});
