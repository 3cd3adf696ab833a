/** A service that is started by the command line sends its spans. */
import assert from 'node:assert/strict';
import { after, describe, it, type TestContext } from 'node:test';
import { startCollector } from '../support/collector.ts';
import { notInstalled } from '../support/hide.ts';
import { stopAll, suite } from '../support/lifetime.ts';
import { oneApi, type RunningService, serviceFor } from '../support/service.ts';
import { faults, upstreamFor } from '../support/upstream.ts';
import { withVariables } from '../support/variables.ts';
import { folderWith, launch, PROGRAM, type Running } from './run.ts';
import { configText, endpointId, KEY, specifications } from './service-config.ts';
import { postTo, urlOf } from './started.ts';

const INSTALL =
  'npm install @opentelemetry/api@1.9 @opentelemetry/exporter-trace-otlp-proto@0.223 @opentelemetry/resources@2 @opentelemetry/sdk-trace-base@2';

/** So long that nothing is sent before the end. */
const LONG = { OTEL_BSP_SCHEDULE_DELAY: '600000' };

describe('spans of a service that is started by the command line', async () => {
  const collector = await startCollector();
  const upstream = await upstreamFor(suite, { '*': faults.json({ price: 7 }) });

  after(() => stopAll(collector));

  /** Starts the service with these variables; in a `.env` beside the config those of `file`. */
  async function start(t: TestContext, env: Readonly<Record<string, string>>, words: string[] = [], file = '') {
    const cwd = await folderWith(t, { 'c.yaml': configText(upstream.url), '.env': file });
    const args = [...words, PROGRAM, 'start', '-c', 'c.yaml'];
    return launch(t, process.execPath, args, { cwd, env: { SERVICE_PRIVATE_KEY: KEY, ...env } });
  }

  async function ask(running: Running): Promise<number> {
    const id = endpointId(specifications(upstream.url).eth);
    return (await postTo(await urlOf(running), id)).status;
  }

  /** In this process, with these variables of the process. */
  async function startWith(t: TestContext, env: Readonly<Record<string, string>>) {
    withVariables(t, env);
    return serviceFor(t, oneApi(upstream.url, { b: { encoding: { type: 'int256', path: '$.price' } } }));
  }

  const warningsOf = ({ logs }: RunningService) =>
    logs.filter(({ level }) => level === 'warn').map(({ message }) => message);

  async function stop(running: Running) {
    const { code, stdout, stderr } = await running.stop();
    assert.deepEqual([code, stderr], [0, '']);
    return stdout;
  }

  for (const name of ['api', 'exporter-trace-otlp-proto', 'resources', 'sdk-trace-base'])
    it(`names the packages to install where @opentelemetry/${name} is missing`, async (t) => {
      const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
      const { code, stderr } = await (await start(t, env, notInstalled(`@opentelemetry/${name}`))).ended;
      const text = `plugin "tracing" cannot start: OTEL_EXPORTER_OTLP_ENDPOINT is set, and needs packages that are not installed: ${INSTALL}\n`;
      assert.deepEqual([code, stderr.slice(-text.length)], [1, text]);
    });

  const off: Readonly<Record<string, Record<string, string>>> = {
    'the variable is empty': { OTEL_EXPORTER_OTLP_ENDPOINT: '' },
    'OTEL_SDK_DISABLED is true': { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_SDK_DISABLED: 'True' },
    'OTEL_TRACES_EXPORTER is none': { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_EXPORTER: 'none' },
  };
  for (const [why, env] of Object.entries(off))
    it(`sends nothing where ${why}`, async (t) => {
      const service = await startWith(t, env);
      const asked = upstream.requests.length;
      assert.equal((await service.post('api/b')).status, 200);
      assert.equal(upstream.requests[asked]?.headers.traceparent, undefined);
    });

  it('imports nothing where no variable is set, and says that one counts for nothing in a file', async (t) => {
    const packages = ['api', 'exporter-trace-otlp-proto', 'resources', 'sdk-trace-base'];
    const hidden = packages.flatMap((name) => notInstalled(`@opentelemetry/${name}`));
    const running = await start(t, {}, hidden, 'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9\n');
    assert.equal(await ask(running), 200);
    assert.match(
      await stop(running),
      / WARN OTEL_EXPORTER_OTLP_ENDPOINT counts only as a variable of the process, not in a file\n/,
    );
  });

  const endpoint = 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const traces = 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  const must = 'must be an http or https URL such as http://127.0.0.1:4318';
  const one = (name: string, of: string) =>
    `${name} must be http/protobuf, the one protocol that spans are sent by: set it so, and ${of} to that port of the collector (4318)`;
  const wrong: readonly (readonly [Record<string, string>, string])[] = [
    [{ [endpoint]: 'collector:4318' }, `${endpoint} ${must}`],
    [{ [endpoint]: 'http://a', [traces]: 'nowhere' }, `${traces} ${must}`],
    [{ [endpoint]: 'http://a', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, one('OTEL_EXPORTER_OTLP_PROTOCOL', endpoint)],
    [
      { [traces]: 'http://a', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' },
      one('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', traces),
    ],
  ];
  for (const [env, text] of wrong)
    it(`does not start with ${JSON.stringify(env)}`, async (t) => {
      await assert.rejects(startWith(t, env), { message: `plugin "tracing" cannot start: ${text}` });
    });

  it('flushes at a stop, compressed and to the path of the variables, and says what the library makes of a wrong one', async (t) => {
    const env = { [traces]: `${collector.url}/of/traces`, OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip', ...LONG };
    const running = await start(t, { ...env, OTEL_SERVICE_NAME: 'flushed', OTEL_TRACES_SAMPLER: 'some' });
    assert.equal(await ask(running), 200);
    const before = collector.requests.length;
    assert.match(
      await stop(running),
      / WARN OpenTelemetry: OTEL_TRACES_SAMPLER value "some" invalid, defaulting to "parentbased_always_on"\.\n/,
    );
    const spans = collector.spans.filter(({ resource }) => resource['service.name'] === 'flushed');
    assert.equal(spans.filter(({ kind }) => kind === 'server').length, 1);
    const sent = collector.requests.slice(before).map(({ path, headers }) => [path, headers['content-encoding']]);
    assert.deepEqual(sent, [['/of/traces', 'gzip']]);
  });

  it('stops in time, and says so, where the collector does not answer', async (t) => {
    const silent = await upstreamFor(t, { '*': faults.hang() });
    const service = await startWith(t, { [endpoint]: silent.url, ...LONG });
    assert.equal((await service.post('api/b')).status, 200);
    await service.stop();
    assert.ok(warningsOf(service).includes('spans were lost: the collector did not take them in time'));
  });

  it('says in the words of the library how many it has dropped, once in ten seconds', async (t) => {
    const few = { OTEL_BSP_MAX_QUEUE_SIZE: '1', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' };
    const service = await startWith(t, { [endpoint]: collector.url, ...few });
    for (let count = 0; count < 3; count++) assert.equal((await service.post('api/b')).status, 200);
    await service.stop();
    const lines = warningsOf(service).filter((message) => message.startsWith('OpenTelemetry: '));
    assert.equal(lines.length, 1);
    assert.match(String(lines), /^OpenTelemetry: Dropped [1-9]\d* spans because maxQueueSize reached$/);
  });

  it('has the sampler of the variables decide what is recorded', async (t) => {
    const service = await startWith(t, { [endpoint]: collector.url, OTEL_TRACES_SAMPLER: 'always_off', ...LONG });
    const [asked, before] = [upstream.requests.length, collector.requests.length];
    assert.equal((await service.post('api/b')).status, 200);
    assert.match(String(upstream.requests[asked]?.headers.traceparent), /^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
    await service.stop();
    assert.equal(collector.requests.length, before);
  });
});
