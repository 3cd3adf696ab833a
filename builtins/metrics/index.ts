import { isLoopback } from '../../lib/http/target.ts';
import {
  type CheckContext,
  checkHost,
  closedObject,
  type Finding,
  optionalKey,
  warning,
} from '../../plugins-sdk/config.ts';
import { definePlugin, type HttpResponse, type Services, Type } from '../../plugins-sdk/index.ts';
import { StateKey } from '../../plugins-sdk/state.ts';
import { probes } from '../shared/probes.ts';
import { hostGuard } from './hosts.ts';
import type { Recorder } from './recorder.ts';
import { MetricsServer, type Pages } from './server.ts';
import { pluginCalls, traffic } from './traffic.ts';

const metricsKey = optionalKey(
  'settings',
  'metrics',
  closedObject(
    {
      port: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Port; 0 takes a free one' }),
      host: Type.Optional(Type.String({ minLength: 1, description: 'Address to listen on; default 127.0.0.1' })),
      hosts: Type.Optional(
        Type.Array(
          Type.String({ pattern: '^[A-Za-z0-9._-]+$', description: 'Host name alone, without http:// and port' }),
          {
            description: 'Host names of /metrics and /status, besides IP addresses and localhost; default none',
          },
        ),
      ),
    },
    'Serves GET /metrics on its own port; default none',
  ),
);
/** Prometheus's text format. */
const TEXT = { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' };

/** The topic under which workers exchange their status. */
const STATUS = 'status';

const LOOPBACK = '127.0.0.1';

function* check({ config }: CheckContext): Iterable<Finding> {
  const { host = LOOPBACK } = metricsKey.in(config) ?? {};
  yield* checkHost('settings.metrics.host', host);
  if (!isLoopback(host)) yield warning('settings.metrics.host', 'whoever reaches this address can read the metrics');
}

/** Returns the status of every process of the service. */
async function processes({ status, workers }: Services): Promise<HttpResponse> {
  const shown = workers === undefined ? [status.read()] : await workers.gather(STATUS);
  return { status: 200, body: JSON.stringify({ processes: shown }) };
}

/** Counts on over reloads, until a config has no metrics. Kept apart from the server, whose port may change. */
const keptRecorder = new StateKey<Recorder>('metrics');
const keptServer = new StateKey<MetricsServer>('metrics server');

/**
 * Counts and times the service's work for Prometheus: `GET /metrics` on a port of its own, off unless `settings.metrics`
 * names it. Clients do not use that port, so it also answers `/health` and `/ready` however busy the other port is.
 */
export const metrics = definePlugin({
  name: 'metrics',
  keys: [metricsKey],
  changesAnswers: false,
  check: (context) => [...check(context)],
  setup(services) {
    const { config, endpoints, states, meters, log, workers } = services;
    const address = metricsKey.in(config);
    // Made even without an address, so that the names that other plugins cannot use do not depend on it.
    const { stage, response, concluded } = traffic(meters, address === undefined ? [] : endpoints);
    const call = pluginCalls(meters);
    if (address === undefined) return {};
    const { port, host = LOOPBACK, hosts = [] } = address;
    const server = states.keep(keptServer, `${host}:${port}`, () => new MetricsServer({ host, port }, log));
    const guarded = hostGuard(hosts, log);
    let pages: Pages = {};
    return {
      start: async () => {
        // Imported here: a service without metrics should not spend time and memory on the library.
        const { Recorder } = await import('./recorder.ts');
        const recorder = states.keep(keptRecorder, '', () => new Recorder(services));
        pages = {
          '/metrics': guarded(async () => ({ status: 200, headers: TEXT, body: await recorder.text() })),
          '/status': guarded(() => processes(services)),
          ...probes(services),
        };
        workers?.offer(STATUS, async () => services.status.read());
        await server.start(pages);
        meters.connect(recorder);
      },
      stop: () => server.remove(pages),
      hooks: { concluded },
      observe: { stage, call, response },
    };
  },
});
