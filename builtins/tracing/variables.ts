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
export function checkVariables(env: Environment, endpoint: string): void {
  const url = env[endpoint]?.trim() ?? '';
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new Error(`${endpoint} must be an http or https URL such as http://127.0.0.1:4318`);
  const variable = PROTOCOLS.find((name) => env[name]?.trim());
  if (variable !== undefined && env[variable]?.trim() !== PROTOCOL)
    throw new Error(
      `${variable} must be ${PROTOCOL}, the one protocol that spans are sent by: set it so, and ${endpoint} to that port of the collector (4318)`,
    );
}
