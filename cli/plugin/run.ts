import { inTime } from '../../config/plugins/import.ts';
import type { PluginChoice } from '../../config/plugins/load.ts';
import type { Complaint, Outcome, PluginHarness, TestRequest } from '../../plugins-sdk/harness.ts';
import { testEndpoint, testPlugin } from '../../plugins-sdk/harness.ts';
import {
  type ApiResponse,
  type Behaviour,
  type Definition,
  type EndpointDraft,
  type Finding,
  type Hex,
  type Json,
  type Log,
  type Parameters,
  publicHooks,
} from '../../plugins-sdk/index.ts';
import { difference } from './difference.ts';
import type { RecordedRequest } from './record.ts';

/** What came of one hook, or of what stands between two hooks. */
export interface Step {
  readonly name: string;
  /** Milliseconds; absent for what was not called. */
  readonly spent?: number;
  readonly text: string;
  /** Whether the plugin failed here, or nothing could be signed. */
  readonly fault: boolean;
}

export interface Trial {
  readonly choice: PluginChoice;
  readonly record: RecordedRequest;
  /** What turns the response into bytes where the endpoint has an `encoding`. */
  readonly encoder: Definition;
  /** Request headers that the service hides from plugins. */
  readonly credentials: readonly string[];
  readonly log: Log;
  /** Milliseconds that the plugin may take to start. */
  readonly patience: number;
}

type Endpoint = ReturnType<typeof testEndpoint>;
type Refused = Extract<Outcome<never>, { refused: unknown }>['refused'];

const failed: Refused = { status: 502, message: 'API call failed' };
const RAW = 'not run: a raw answer skips it; record endpoint.encoding, or data';

/** An encoding that the service would not start with. */
export class UnusableEncoding extends Error {
  readonly findings: readonly Finding[];

  constructor(findings: readonly Finding[]) {
    super(findings.map(({ path, message }) => `${path}: ${message}`).join('\n'));
    this.findings = findings;
  }
}

/**
 * Passes a recorded request through the hooks of a plugin, in the order of the pipeline and behind the guard that they
 * have in the service: each hook gets what the one before it made of the request. A request that is refused ends in `onError`,
 * any other in `onResponseSent`; an `onError` that had nothing to do is run with the recorded error at last.
 *
 * @throws UnusableEncoding
 * @throws Error what `setup` or `start` of the plugin throws.
 */
export async function runRecorded(trial: Trial): Promise<Step[]> {
  const endpoint = endpointOf(trial.record);
  const { harness, hooks } = await prepare(trial, endpoint);
  const encode = await encoderFor(trial, endpoint);
  const run = new Run(harness, hooks, trial.record, encode);
  await run.all();
  await harness.stop();
  return run.steps;
}

function endpointOf({ endpoint: { encoding, own = {}, shared = {}, ...names } = {} }: RecordedRequest): Endpoint {
  const given = Object.fromEntries(Object.entries(names).filter(([, value]) => value !== undefined));
  return testEndpoint({ ...given, own: encoding === undefined ? own : { ...own, encoding }, shared });
}

/** Registers and starts the plugin, and learns which hooks it has. */
async function prepare({ choice, credentials, log, patience }: Trial, endpoint: Endpoint) {
  const { definition, budget, config } = choice;
  let made: Behaviour = {};
  const observed: Definition = {
    name: definition.name,
    credentials: definition.credentials ?? [],
    setup: (services, own) => {
      made = definition.setup(services, own);
      return made;
    },
  };
  const services = { endpoints: [endpoint], credentials, log };
  const harness = await inTime(testPlugin(observed, { budget, config, services }), patience);
  return { harness, hooks: Object.keys(made.hooks ?? {}) };
}

type Encode = (response: ApiResponse, parameters: Parameters) => Promise<Hex | Refused | undefined>;

/** The service's own encoder, run on what the plugin made of the response. */
async function encoderFor({ encoder, record }: Trial, endpoint: Endpoint): Promise<Encode> {
  const { encoding } = record.endpoint ?? {};
  if (encoding === undefined) return async () => record.data;
  const { id: _, ...rest } = endpoint;
  const draft: EndpointDraft = { ...rest, path: 'endpoint' };
  const findings = encoder.check?.({ config: {}, endpoints: [draft], interpolated: () => false }) ?? [];
  if (findings.length > 0) throw new UnusableEncoding(findings);
  const harness = await testPlugin(encoder, { services: { endpoints: [endpoint] } });
  return async (response, parameters) => {
    const request = harness.request({ endpoint, parameters });
    const chosen = await request.stage('validate', parameters);
    if ('refused' in chosen) return chosen.refused;
    const encoded = await request.stage('encode', response);
    if ('refused' in encoded) return encoded.refused;
    return 'value' in encoded ? encoded.value.bytes : undefined;
  };
}

class Run {
  readonly steps: Step[] = [];
  readonly #harness: PluginHarness;
  readonly #hooks: readonly string[];
  readonly #record: RecordedRequest;
  readonly #encode: Encode;
  readonly #request: TestRequest;
  #refused: Refused | undefined;

  constructor(harness: PluginHarness, hooks: readonly string[], record: RecordedRequest, encode: Encode) {
    const { parameters, headers, ip } = record;
    this.#harness = harness;
    this.#hooks = hooks;
    this.#record = record;
    this.#encode = encode;
    this.#request = harness.request({ parameters, headers, ip });
  }

  async all(): Promise<void> {
    await this.#change('onHttpRequest', {}, () => this.#request.onHttpRequest());
    const parameters = await this.#beforeApiCall();
    await this.#sign(await this.#afterApiCall(parameters));
    await this.#conclude();
    const inner = this.#hooks.filter((hook) => !Object.hasOwn(publicHooks, hook));
    for (const name of inner) this.#note(name, 'not run: test inner stages with signed-data-proxy/plugins-sdk/testing');
  }

  async #beforeApiCall(): Promise<Parameters> {
    const parameters = this.#record.parameters ?? {};
    const changed = await this.#change('onBeforeApiCall', parameters, () => this.#request.onBeforeApiCall());
    return changed ?? parameters;
  }

  async #afterApiCall(parameters: Parameters): Promise<ApiResponse> {
    const { data = null, status = 200 } = this.#record.response ?? {};
    const given: { data: Json; status: number } = { data, status };
    const changed = await this.#change('onAfterApiCall', given, () => {
      return this.#request.onAfterApiCall({ ...given, parameters });
    });
    const response: ApiResponse = changed ?? { ...given, text: JSON.stringify(data) };
    const isError = response.status < 200 || response.status > 299;
    if (isError) this.#refuse('(status)', failed, ', for an error status is never signed', false);
    return response;
  }

  async #sign(response: ApiResponse): Promise<void> {
    const bytes = await this.#bytes(response);
    if (bytes === undefined && this.#refused === undefined) {
      if (this.#hooks.includes('onBeforeSign')) this.#note('onBeforeSign', RAW);
      return;
    }
    const data = bytes ?? '0x';
    await this.#change('onBeforeSign', { data }, async () => {
      const outcome = await this.#request.onBeforeSign({ data });
      return 'value' in outcome ? { value: { data: outcome.value } } : outcome;
    });
  }

  /** @returns nothing for a raw answer, and where there is nothing to sign. */
  async #bytes(response: ApiResponse): Promise<Hex | undefined> {
    if (this.#refused !== undefined) return undefined;
    const encoded = await this.#encode(response, this.#record.parameters ?? {});
    if (typeof encoded !== 'object') return encoded;
    this.#refuse('(encoding)', encoded, '', true);
    return undefined;
  }

  async #conclude(): Promise<void> {
    const { status = failed.status, message = failed.message } = this.#record.error ?? {};
    if (this.#refused === undefined) {
      await this.#observe('onResponseSent', '', () => this.#request.onResponseSent());
      const { parameters, headers, ip } = this.#record;
      const another = this.#harness.request({ parameters, headers, ip });
      await this.#observe('onError', ` with ${status} ${message}`, () => another.onError({ status, message }));
      return;
    }
    const refused = this.#refused;
    if (this.#hooks.includes('onResponseSent')) this.#note('onResponseSent', 'not reached');
    await this.#observe('onError', ` with ${refused.status} ${refused.message}`, () => this.#request.onError(refused));
  }

  /** Runs a hook that may change the request or refuse it. @returns what it changed `before` to. */
  async #change<T>(name: string, before: unknown, call: () => Promise<Outcome<T>>): Promise<T | undefined> {
    if (!this.#hooks.includes(name)) return undefined;
    if (this.#refused !== undefined) {
      this.#note(name, 'not reached');
      return undefined;
    }
    const { result, spent, complaint } = await this.#timed(call);
    if ('refused' in result) {
      const { status, message } = result.refused;
      this.#refused = result.refused;
      const text = `${status} ${message}`;
      if (complaint === undefined) this.steps.push({ name, spent, text: `rejected: ${text}`, fault: false });
      else this.steps.push({ name, spent, text: `dropped: ${text}: ${reasonOf(complaint)}`, fault: true });
      return undefined;
    }
    const changes = 'value' in result ? difference(before, result.value) : '';
    this.steps.push({ name, spent, text: changes === '' ? 'passed' : `changed ${changes}`, fault: false });
    return 'value' in result ? result.value : undefined;
  }

  async #observe(name: string, given: string, call: () => Promise<void>): Promise<void> {
    if (!this.#hooks.includes(name)) return;
    const { spent, complaint } = await this.#timed(call);
    const text = complaint === undefined ? `done${given}` : `failed${given}: ${reasonOf(complaint)}`;
    this.steps.push({ name, spent, text, fault: complaint !== undefined });
  }

  async #timed<T>(call: () => Promise<T>): Promise<{ result: T; spent: number; complaint: Complaint | undefined }> {
    const known = this.#harness.complaints.length;
    const begin = performance.now();
    const result = await call();
    return { result, spent: performance.now() - begin, complaint: this.#harness.complaints[known] };
  }

  #refuse(name: string, refused: Refused, why: string, fault: boolean): void {
    this.#refused = refused;
    this.steps.push({ name, text: `refused: ${refused.status} ${refused.message}${why}`, fault });
  }

  #note(name: string, text: string): void {
    this.steps.push({ name, text, fault: false });
  }
}

/** With the place in the plugin where it was thrown, if it was. */
function reasonOf({ message, detail }: Complaint): string {
  const place = detail.split('\n').find((line) => /^ +at /.test(line));
  return place === undefined ? message : `${message} (${place.trim()})`;
}
