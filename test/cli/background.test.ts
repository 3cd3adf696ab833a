/** Work that plugins leave to the background is waited for, and its failure is logged. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { background } from '../support/background.ts';
import { reload } from '../support/reload.ts';
import { type LogLine, oneApi, serviceFor } from '../support/service.ts';
import { eventually } from '../support/wait.ts';
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
    return lines.filter((line) => /^INFO (?:stopping|audited|p stops)|^ERROR/.test(line));
  };
  return { ...running, ask, said };
}

const config = oneApi('http://127.0.0.1:1', { e: {} }, { settings: { plugins: [{ source: './p.mjs' }] } });
const startHere = (t: TestContext, work: string) => serviceFor(t, config, { files: background(work) });

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
    const service = await startHere(t, work);
    const told = ({ level, message }: LogLine) =>
      level === 'error' || /^(?:config reloaded|audited|p stops)$/.test(message);
    const said = () => service.logs.filter(told).map(({ message }) => message);
    await service.post('api/e');
    await reload(service, config);
    await eventually(() => said().includes('p stops'));
    assert.deepEqual(said(), ['config reloaded', 'audited', 'p stops']);
    await service.stop();
    assert.deepEqual(said().slice(3), ['p stops']);
  });

  it('logs a rejection with the name of the plugin, and serves on', async (t) => {
    const service = await startHere(t, `throw new Error('lost');`);
    const lines = () => service.logs.filter(({ level }) => level === 'error');
    await service.post('api/e');
    await eventually(() => lines().length > 0);
    const response = await service.post('api/e');
    assert.deepEqual([response.status, await response.text()], [403, '{"error":"no"}']);
    await service.stop();
    assert.equal(lines().length, 2);
    for (const { message, fields } of lines()) {
      assert.equal(message, 'plugin "p" failed in the background');
      assert.match(String(fields.error), /^Error: lost/);
    }
  });
});
