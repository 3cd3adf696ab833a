/** The Kubernetes example is valid, and runs replicas that are stopped without loss. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { Container, Probe } from 'kubernetes-types/core/v1.d.ts';
import { parse } from 'yaml';
import { loadConfig } from '../../config/index.ts';
import { LONGEST_DRAIN_MS } from '../../service/drain.ts';
import { definitions } from '../../service/index.ts';
import { folderWith, launchCli, PACKAGE_ROOT } from '../cli/run.ts';
import { KEY } from '../cli/service-config.ts';
import { describeServers, freePort, startProgram } from '../state/redis-server.ts';
import { documents, FOLDER, GROUPS, object, objects, podOf } from '../support/kubernetes.ts';
import { retried } from '../support/wait.ts';

const service = podOf('Deployment', 'signed-data-proxy');
const valkey = podOf('StatefulSet', 'signed-data-proxy-valkey');
const configText = object('ConfigMap', 'signed-data-proxy').data?.['config.yaml'] ?? '';
const portOf = ({ ports = [] }: Container, name: unknown) => ports.find((port) => port.name === name)?.containerPort;
const variables = {
  PRICE_API_KEY: 'upstream-key',
  CLIENT_KEY: 'client-key-of-some-length',
  STATE_PASSWORD: 'of-the-state',
  SERVICE_PRIVATE_KEY: KEY,
};

describe('kubernetes.yaml', () => {
  it('is what the types of the Kubernetes API allow, letter by letter', async (t) => {
    const warned = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
    assert.deepEqual(warned, []);
    // Within the package, where the compiler finds the types.
    const folder = await mkdtemp(join(PACKAGE_ROOT, 'node_modules/.kubernetes-'));
    t.after(() => rm(folder, { recursive: true }));
    const lines = objects.map(({ kind, ...rest }, i) => {
      assert.ok(Object.hasOwn(GROUPS, kind), kind);
      const group = Reflect.get(GROUPS, kind);
      return `export const object${i}: import('kubernetes-types/${group}').${kind} = ${JSON.stringify({ kind, ...rest })};\n`;
    });
    const check = async (source: string) => {
      await writeFile(join(folder, 'objects.ts'), source);
      const options = ['--noEmit', '--strict', '--ignoreConfig', '--moduleResolution', 'bundler', '--module', 'esnext'];
      const { status, stdout } = spawnSync(
        join(PACKAGE_ROOT, 'node_modules/.bin/tsc'),
        [...options, join(folder, 'objects.ts')],
        { encoding: 'utf8' },
      );
      return { status, stdout };
    };
    assert.deepEqual(await check(lines.join('')), { status: 0, stdout: '' });
    const misspelt = await check(lines.join('').replace('"failureThreshold"', '"failureTreshold"'));
    assert.match(misspelt.stdout, /'"failureTreshold"' does not exist in type 'Probe'/);
  });

  it('has what it names: selectors, ports, Secrets, files; and names no namespace of its own', () => {
    for (const { metadata } of objects) assert.ok(!Object.hasOwn(metadata, 'namespace'));
    for (const [kind, name, { container, pod }] of [
      ['Deployment', 'signed-data-proxy', service],
      ['StatefulSet', 'signed-data-proxy-valkey', valkey],
    ] as const) {
      const { spec } = object(kind, name);
      const labels = spec?.template.metadata?.labels;
      assert.deepEqual(labels, { 'app.kubernetes.io/name': name });
      const selectors = [
        spec?.selector.matchLabels,
        object('Service', name).spec?.selector,
        object('NetworkPolicy', name).spec?.podSelector.matchLabels,
      ];
      for (const selector of selectors) assert.deepEqual(selector, labels);
      for (const { targetPort } of object('Service', name).spec?.ports ?? []) assert.ok(portOf(container, targetPort));
      const volumes = [
        ...(pod.volumes ?? []).map((volume) => volume.name),
        ...(name === 'signed-data-proxy-valkey' ? ['state'] : []),
      ];
      assert.deepEqual((container.volumeMounts ?? []).map((mount) => mount.name).toSorted(), volumes.toSorted());
      for (const { secret, configMap } of pod.volumes ?? []) {
        if (secret?.secretName) assert.ok(object('Secret', secret.secretName), secret.secretName);
        if (configMap?.name) assert.ok(object('ConfigMap', configMap.name));
        if (secret) assert.equal(secret.defaultMode, 0o400);
      }
    }
    assert.deepEqual(object('PodDisruptionBudget', 'signed-data-proxy').spec?.selector?.matchLabels, {
      'app.kubernetes.io/name': 'signed-data-proxy',
    });
    assert.equal(object('Deployment', 'signed-data-proxy').spec?.replicas, 2);
  });

  it('has no secret but placeholders, which stop the start', async (t) => {
    const env = object('Secret', 'signed-data-proxy').stringData?.['service.env'] ?? '';
    for (const line of env.trimEnd().split('\n')) assert.match(line, /^[A-Z_]+="?REPLACE/);
    const named = [...configText.matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name);
    const written = [...env.matchAll(/^(\w+)=/gm)].map(([, name = '']) => name);
    assert.deepEqual(written.toSorted(), [...named, 'SERVICE_MNEMONIC'].toSorted());
    const cwd = await folderWith(t, { 'service.env': env, 'config.yaml': configText });
    const { code, stderr } = await launchCli(t, argsIn(cwd)).ended;
    assert.deepEqual(
      [code, stderr],
      [1, 'error: SERVICE_MNEMONIC must be a BIP-39 mnemonic: 12 to 24 English words with a valid checksum\n'],
    );
  });

  it('takes away what nobody needs', () => {
    for (const { pod, container } of [service, valkey]) {
      const { runAsNonRoot, runAsUser, fsGroup, seccompProfile } = pod.securityContext ?? {};
      assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: 'RuntimeDefault' }]);
      assert.ok(runAsUser === fsGroup && (runAsUser ?? 0) > 0);
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      assert.deepEqual(
        [pod.automountServiceAccountToken, pod.enableServiceLinks, container.env, container.envFrom],
        [false, false, undefined, undefined],
      );
      assert.ok(container.resources?.requests?.memory && container.resources.limits?.memory);
    }
    assert.match(
      readFileSync(join(FOLDER, 'Dockerfile'), 'utf8'),
      new RegExp(`^USER ${service.pod.securityContext?.runAsUser}:`, 'm'),
    );
  });
});

/** The words of the container, with its paths in a folder. */
const argsIn = (cwd: string) =>
  (service.container.args ?? []).map((word) =>
    word.replace(/^\/(?:config|run\/secrets\/signed-data-proxy)\//, `${cwd}/`),
  );

/** Seconds until a probe gives up. */
const patienceOf = ({ periodSeconds = 10, failureThreshold = 3 }: Probe = {}) => periodSeconds * failureThreshold;

describe('the config of kubernetes.yaml', () => {
  it('is valid, warns of the proxy and of the metrics only, and fits the ports', async (t) => {
    const cwd = await folderWith(t, { 'config.yaml': configText });
    const { config, warnings } = await loadConfig({
      file: join(cwd, 'config.yaml'),
      env: variables,
      builtins: definitions(),
    });
    const paths = warnings.map(({ path }) => path);
    assert.deepEqual(paths, ['server.rateLimit.trustForwardedFor', 'settings.metrics.host', 'settings.state.url']);
    const { server, settings } = parse(configText);
    assert.deepEqual(config.server, {
      host: '0.0.0.0',
      port: portOf(service.container, 'http'),
      drainDelay: 5000,
      rateLimit: { trustForwardedFor: 1 },
    });
    assert.deepEqual([settings.metrics.port, server.host], [portOf(service.container, 'metrics'), '0.0.0.0']);
    assert.equal(
      settings.state.url,
      `redis://${object('Service', 'signed-data-proxy-valkey').metadata?.name}:${portOf(valkey.container, 'valkey')}`,
    );
    const { annotations } = object('Deployment', 'signed-data-proxy').spec?.template.metadata ?? {};
    assert.deepEqual(annotations, {
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(settings.metrics.port),
      'prometheus.io/path': '/metrics',
    });
  });

  it('gives a stop the time that it may take', () => {
    const { server } = parse(configText);
    const { lifecycle } = service.container;
    const [program, seconds] = lifecycle?.preStop?.exec?.command ?? [];
    assert.equal(program, 'sleep');
    // Plugins have 5 s after that, and a reader of the log that takes nothing one.
    const needed = Number(seconds) + (server.drainDelay + LONGEST_DRAIN_MS) / 1000 + 6;
    assert.deepEqual([needed, service.pod.terminationGracePeriodSeconds], [61, 65]);
    assert.ok(patienceOf(service.container.readinessProbe) <= Number(seconds) + server.drainDelay / 1000);
  });

  it('lets the watchdog of the service be first, and its start wait for the state', () => {
    const [, watchdog] = /SERVICE_WATCHDOG=(\d+)/.exec(readFileSync(join(FOLDER, 'Dockerfile'), 'utf8')) ?? [];
    assert.ok(patienceOf(service.container.livenessProbe) > Number(watchdog) + 10);
    assert.ok(patienceOf(service.container.startupProbe) >= 60);
    const compose = parse(readFileSync(join(FOLDER, 'compose.yaml'), 'utf8')).services.valkey;
    assert.equal(valkey.container.image, compose.image);
    const words = (valkey.container.command ?? []).map((word) => (word === '' ? '""' : word));
    assert.equal(words.join(' ').replace('/run/secrets/valkey/', '/run/secrets/'), compose.command.trim());
  });
});

describeServers('what kubernetes.yaml runs', (program) => {
  it('starts with the words of its containers; its probes are answered, and its metrics', async (t) => {
    const port = await freePort();
    const acl = (object('Secret', 'valkey').stringData?.['valkey.acl'] ?? '').replace(
      '>REPLACE',
      `>${variables.STATE_PASSWORD}`,
    );
    const [http, metrics] = [await freePort(), await freePort()];
    const config = parse(configText);
    config.server = { ...config.server, host: '127.0.0.1', port: http, drainDelay: 0 };
    config.settings.metrics = { host: '127.0.0.1', port: metrics };
    config.settings.state.url = `redis://127.0.0.1:${port}`;
    const env = Object.entries(variables).map(([name, value]) => `${name}=${value}\n`);
    const cwd = await folderWith(t, {
      'valkey.acl': acl,
      'config.yaml': JSON.stringify(config),
      'service.env': env.join(''),
    });
    const words = (valkey.container.command ?? [])
      .slice(1)
      .map((word) => word.replace('/run/secrets/valkey/', `${cwd}/`));
    startProgram(t, program, [...words, '--dir', cwd, '--port', `${port}`, '--bind', '127.0.0.1']);
    const running = await retried(async () => {
      const started = launchCli(t, argsIn(cwd));
      await started.output(/listening on/);
      return started;
    });
    const { startupProbe, readinessProbe, livenessProbe } = service.container;
    for (const probe of [startupProbe, readinessProbe, livenessProbe]) {
      assert.equal(probe?.httpGet?.port, 'metrics');
      assert.equal((await fetch(`http://127.0.0.1:${metrics}${probe.httpGet.path}`)).status, 200);
    }
    const page = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    assert.match(page, /^signed_data_proxy_state_available\S* 1$/m);
    assert.match(page, /^signed_data_proxy_config_last_reload_successful\S* 1$/m);
    // As the kubelet does it when the ConfigMap has changed.
    config.apis[0].endpoints[0].name = 'renamed';
    await writeFile(join(cwd, 'config.yaml'), JSON.stringify(config));
    await running.output(/config reloaded/);
    assert.equal((await running.stop()).code, 0);
  });
});
