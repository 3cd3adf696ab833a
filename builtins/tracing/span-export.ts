import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import { optionalPackage } from '../../lib/process/packages.ts';
import { atMostEvery, LATE, withTimeout } from '../../lib/time.ts';
import type { Log, Services } from '../../plugins-sdk/index.ts';

const INSTALL =
  'npm install @opentelemetry/api@1.9 @opentelemetry/exporter-trace-otlp-proto@0.223 @opentelemetry/resources@2 @opentelemetry/sdk-trace-base@2';

/** Most milliseconds that a stop waits for the collector. */
const FLUSH_TIMEOUT_MS = 3000;
/** Milliseconds in which dropped spans are logged once at most. */
const QUIET_MS = 10_000;

type Environment = Readonly<Record<string, string | undefined>>;

/** OpenTelemetry's standard variables for the collector's URL; the one for traces alone comes first. */
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const PROTOCOLS = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

const PROTOCOL = 'http/protobuf';

/** Returns the name of the variable that gives the collector's URL; an empty variable counts as none. */
export function endpointVariable(env: Environment): string | undefined {
  const isOff = env.OTEL_SDK_DISABLED?.trim().toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER?.trim() === 'none';
  return isOff ? undefined : ENDPOINTS.find((name) => env[name]?.trim());
}

/** Checks values that the library would silently replace by defaults. @throws Error that names the variable and the remedy. */
function checkVariables(env: Environment, endpoint: string): void {
  const url = env[endpoint]?.trim() ?? '';
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Error(`${endpoint} must be an http or https URL such as http://127.0.0.1:4318`);
  const variable = PROTOCOLS.find((name) => env[name]?.trim());
  if (variable !== undefined && env[variable]?.trim() !== PROTOCOL)
    throw new Error(
      `${variable} must be ${PROTOCOL}, the one protocol that spans are sent by: set it so, and ${endpoint} to that port of the collector (4318)`,
    );
}

/** OpenTelemetry's API, the tracer that makes spans, and the end of their export. */
export type Tracing = Awaited<ReturnType<typeof load>>;

/**
 * Sends the spans of this process to a collector, over all reloads. The library reads OpenTelemetry's variables itself.
 * @param variable the environment variable that names the collector.
 */
export function spanExport(variable: string, { log, version }: Services) {
  let started: Promise<Tracing> | undefined;
  return {
    /** Loads the library, once. @throws Error with the command that installs missing packages, or the wrong variable. */
    start(): Promise<Tracing> {
      checkVariables(process.env, variable);
      started ??= load(variable, { log, version });
      return started;
    },
    /** Sends the remaining spans, in bounded time. */
    async flush(): Promise<void> {
      const exporting = await started?.catch(() => undefined);
      const flushed = await withTimeout(FLUSH_TIMEOUT_MS, exporting?.flush());
      if (flushed === LATE) log.warn('spans were lost: the collector did not take them in time');
    },
    /** Shuts the library down, without a wait: `flush` has sent the spans before. */
    close(): void {
      void started?.then((exporting) => exporting.close()).catch(() => undefined);
    },
  };
}

async function load(variable: string, { version, log }: Pick<Services, 'log' | 'version'>) {
  const missing = `${variable} is set, and needs packages that are not installed: ${INSTALL}`;
  const [api, { OTLPTraceExporter }, resources, sdk] = await optionalPackage(
    () =>
      Promise.all([
        import('@opentelemetry/api'),
        import('@opentelemetry/exporter-trace-otlp-proto'),
        import('@opentelemetry/resources'),
        import('@opentelemetry/sdk-trace-base'),
      ]),
    missing,
  );
  // The diagnostic logger alone is told when the library replaces a variable's value by a default.
  const { diag } = api;
  const said = (message: string) => log.warn(`OpenTelemetry: ${message}`);
  const nothing = () => undefined;
  const quiet = { error: nothing, warn: nothing, info: nothing, debug: nothing, verbose: nothing };
  const options = { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true };
  diag.setLogger({ ...quiet, error: said, warn: said }, options);
  const exporter = telling(new OTLPTraceExporter(), log);
  const own = { 'service.name': 'signed-data-proxy', 'service.version': version, 'process.pid': process.pid };
  const resource = resources
    .defaultResource()
    .merge(resources.resourceFromAttributes(own))
    .merge(resources.detectResources({ detectors: [resources.envDetector] }));
  const provider = new sdk.BasicTracerProvider({ resource, spanProcessors: [new sdk.BatchSpanProcessor(exporter)] });
  const dropped = atMostEvery(QUIET_MS, said);
  diag.setLogger({ ...quiet, warn: (message) => message.startsWith('Dropped ') && dropped(message) }, options);
  return {
    api,
    tracer: provider.getTracer('signed-data-proxy', version),
    // The provider does not wait for a batch that is being sent, the exporter does.
    flush: () => Promise.allSettled([provider.forceFlush(), exporter.forceFlush?.()]),
    close: () => provider.shutdown(),
  };
}

/** Wraps an exporter, to log when spans begin to be lost and when they are accepted again; the library does not. */
function telling(exporter: SpanExporter, log: Log): SpanExporter {
  let lost = 0;
  return {
    export: (spans, done) => {
      exporter.export(spans, (result) => {
        const isTaken = result.code === 0;
        if (isTaken && lost > 0) log.info('spans are exported again', { lost });
        if (!isTaken && lost === 0) log.warn('spans are not exported', { error: errorText(result.error) });
        lost = isTaken ? 0 : lost + spans.length;
        done(result);
      });
    },
    forceFlush: async () => exporter.forceFlush?.(),
    shutdown: () => exporter.shutdown(),
  };
}

/** Describes an export error. Node.js' error for several refused addresses has no message, and that for a status only a code. */
function errorText(error: (Error & { readonly code?: unknown }) | undefined): string {
  return [error?.code, error?.message].filter(Boolean).join(' ') || 'the collector is busy';
}
