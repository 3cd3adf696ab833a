import { control, Exchange } from '../../../kernel/exchange.ts';
import type { CallEvent } from '../../../kernel/hooks.ts';
import { serve } from '../../../kernel/pipeline.ts';
import { type PluginSet, type Registration, register } from '../../../kernel/registry.ts';
import { type StageName, stageNames, stages } from '../../../kernel/stages.ts';
import type {
  Endpoint,
  HttpRequest,
  HttpResponse,
  Parameters,
  RequestOutcome,
  SignRequest,
} from '../../../kernel/values.ts';
import { randomId } from '../../../lib/eth/hex.ts';
import { deferred } from '../../../lib/time.ts';
import { madeHere } from '../../../plugins-sdk/results/answers.ts';
import { contractsFor } from '../../../plugins-sdk/results/contracts.ts';
import { Trace } from './ledger.ts';
import { actsOf, PLUGINS, type Plan } from './plan.ts';
import { type Act, ignore, pause, type RunFn, requestIdOf, type Situation, turns } from './situation.ts';
import { Kept, node, questionOf, sign, soundResult, statementsOf } from './sound.ts';

type PluginFunction = (...args: unknown[]) => unknown;

/** Milliseconds that pass by the clock of a calm service in what is charged to nobody; more than any budget. */
const LEAP = 60_000;
/** Milliseconds after which a request that has not ended never does. */
const HANGS = 120_000;

const runtime = { now: () => 7000, makeAnswer: madeHere, failed: ignore };

/** A kernel with plugins that misbehave as plans have it, behind built-ins that do not. */
export class FuzzedService {
  readonly #isCalm: boolean;
  readonly #budget: number;
  readonly #plugins: PluginSet;
  readonly #traces = new Map<string, Trace>();
  readonly #kept = new Kept();
  readonly #blame: (what: string) => void;
  #time = 0;

  /** @param isCalm whether time passes only where it is charged to nobody: then no budget may ever lose any. */
  constructor(isCalm: boolean, budget: number, blame: (what: string) => void) {
    this.#isCalm = isCalm;
    this.#budget = budget;
    this.#blame = blame;
    this.#plugins = this.#sealed();
  }

  /** Makes the requests, and waits for all that they leave behind. A calm service takes one after the other. */
  async run(plans: readonly Plan[]): Promise<void> {
    const traces: Trace[] = [];
    const work = async () => {
      for (const plan of this.#isCalm ? plans : []) {
        await this.#ask(plan, traces);
        await this.#plugins.running.wait();
      }
      if (!this.#isCalm) await Promise.all(plans.map((plan) => this.#ask(plan, traces)));
      await this.#plugins.running.wait();
      await turns(2);
    };
    const { now } = performance;
    if (this.#isCalm) performance.now = () => this.#time;
    const timer = new AbortController();
    const isOver = await Promise.race([work().then(() => true), pause(HANGS, timer.signal).then(() => false)]);
    timer.abort();
    performance.now = now;
    for (const trace of traces) trace.check();
    if (!isOver)
      this.#blame(
        `requests or the drain hang: ${traces.filter((trace) => !trace.isOver).map(({ plan }) => plan.name)}`,
      );
  }

  async #ask(plan: Plan, traces: Trace[]): Promise<void> {
    const requestId = randomId();
    const exchange = new Exchange({ requestId, method: 'POST', route: '/', headers: {}, socketAddress: '127.0.0.1' });
    const trace = new Trace(plan, exchange, this.#blame);
    this.#traces.set(requestId, trace);
    traces.push(trace);
    void this.#leave(trace);
    const over = deferred<void>();
    try {
      trace.ended(await this.#respond(trace, over.promise));
    } catch (thrown) {
      trace.ended({ thrown });
    }
    await this.#plugins.hooks.respond.ask([{}, exchange]);
    over.resolve();
    trace.isOver = true;
  }

  async #leave({ plan: { leaving }, exchange }: Trace): Promise<void> {
    if (leaving === undefined || !('after' in leaving)) return;
    if (leaving.after === 'turns') await turns(leaving.count);
    else await pause(leaving.count);
    control.disconnect(exchange);
  }

  async #respond(trace: Trace, responded: Promise<void>): Promise<HttpResponse> {
    const { exchange, plan } = trace;
    await this.#plugins.hooks.admit.ask([exchange]);
    if (plan.acts.has('0 route')) {
      const request = { params: {}, query: new URLSearchParams(), body: new Uint8Array() };
      return (await this.#plugins.hooks.route.ask([request, exchange], 'GET /0')) ?? { status: 500, body: '' };
    }
    trace.isServed = true;
    const httpRequest = {} as HttpRequest;
    const request = { exchange, endpointId: plan.endpoint.id, httpRequest, responded };
    const response = await serve(this.#plugins, runtime, request);
    await this.#read(response, trace);
    return response;
  }

  /** Takes chunks of a body that streams, as long as somebody wants them. */
  async #read({ body }: HttpResponse, { exchange, plan }: Trace): Promise<void> {
    if (typeof body !== 'object' || !(Symbol.asyncIterator in body)) return;
    const iterator = body[Symbol.asyncIterator]();
    try {
      for (let count = 0; count < plan.chunks && !exchange.abandoned; count++) if ((await iterator.next()).done) return;
      await iterator.return?.();
    } catch {
      // The connection ends.
    } finally {
      // As the HTTP layer does: nobody waits for more of a stream that has ended.
      control.disconnect(exchange);
    }
  }

  #sealed(): PluginSet {
    const plugins = Array.from(
      { length: PLUGINS },
      (_, plugin): Registration => ({
        name: `p${plugin}`,
        budget: this.#budget,
        plugin: this.#misbehaving(plugin),
      }),
    );
    plugins.push({ name: 'base', budget: 1e9, isBuiltin: true, plugin: { hooks: this.#base() } });
    return register(plugins, {
      contracts: contractsFor({ signers: [node], now: () => 7000, endpoints: { has: () => true } }),
      complain: ignore,
      observer: { call: (event) => event.plugin !== 'base' && this.#called(event) },
    });
  }

  /** In a calm service time passes only in what plugins wait for; those who watch may do so beside a further run. */
  #called({ exchange, plugin, stage, charge, outcome }: CallEvent): void {
    if (!this.#isCalm || charge === undefined || stages[stage as StageName].kind === 'watch') return;
    if (outcome === 'exhausted' || charge.remaining !== charge.total)
      this.#traces
        .get(exchange.requestId)
        ?.blame(`${plugin} was charged ${charge.total - charge.remaining} at ${stage}`);
  }

  #misbehaving(plugin: number) {
    const at =
      (stage: StageName): PluginFunction =>
      (...args) =>
        this.#act(plugin, stage, args);
    const tableOf = (stage: StageName): unknown => {
      if (stage === 'present') return { [`once${plugin}`]: at(stage) };
      return stage === 'authenticate' ? { [`odd${plugin}`]: at(stage) } : at(stage);
    };
    const names = stageNames.filter((stage) => !stages[stage].ownMember);
    return {
      hooks: Object.fromEntries(names.map((stage) => [stage, tableOf(stage)])),
      vary: at('vary') as () => undefined,
      routes: [{ method: 'GET', path: `/${plugin}`, admit: false, handle: at('route') as () => HttpResponse }],
    };
  }

  /** What a plugin's function does. */
  #act(plugin: number, stage: StageName, args: unknown[]): unknown {
    const trace = this.#traces.get(requestIdOf(args));
    if (trace === undefined) return this.#blame(`${stage} of an unknown request`);
    const { plan } = trace;
    const exchange = args.at(-2) as Exchange | undefined;
    trace.asked(stage, exchange);
    if (!this.#isCalm && plan.leaving && 'at' in plan.leaving && plan.leaving.at === stage)
      control.disconnect(trace.exchange);
    const name = plan.acts.get(`${plugin} ${stage}`) ?? (stage === 'present' ? 'runs' : undefined);
    if (name === undefined) return undefined;
    const act: Act = actsOf(stage, this.#isCalm)[name] ?? ignore;
    if (stage === 'present') args[0] = this.#traced(args[0] as RunFn, trace);
    const draw = plan.draw(plugin, stage);
    const situation: Situation = {
      ...{ stage, args, draw, key: plan.key, budget: this.#budget },
      call: args.at(-1) as Situation['call'],
      sound: () => soundResult(stage, args, { endpoint: plan.endpoint, kept: this.#kept, draw }),
      leave: () => (this.#isCalm ? undefined : control.disconnect(trace.exchange)),
      blame: (what) => trace.blame(what),
    };
    return act(situation);
  }

  #traced(run: RunFn, trace: Trace): RunFn {
    return (options) => trace.ran(run(options));
  }

  /** What the built-ins do: at once, or some turns later. */
  #base() {
    const traceOf = ({ requestId }: { readonly requestId: string }) => this.#traces.get(requestId);
    const endpointOf = (exchange: Exchange): Endpoint => traceOf(exchange)?.plan.endpoint ?? exchange.endpoint;
    const slowly = async (stage: StageName, exchange: Exchange) => {
      traceOf(exchange)?.asked(stage, exchange);
      this.#time += LEAP;
      await turns(traceOf(exchange)?.plan.slowness ?? 1);
      this.#time += LEAP;
    };
    return {
      resolve: (_: unknown, exchange: Exchange) => endpointOf(exchange),
      parseBody: () => ({ a: 0 }),
      authenticate: { free: () => true },
      prepare: (parameters: Parameters, _: string, exchange: Exchange) => questionOf(parameters, exchange.endpoint),
      present: {
        sync: async (run: RunFn, exchange: Exchange) => {
          const trace = traceOf(exchange);
          const { json } = await (trace === undefined ? run : this.#traced(run, trace))();
          return { status: 200, body: json };
        },
      },
      callApi: async (request: unknown, exchange: Exchange) => {
        await slowly('callApi', exchange);
        return { status: 200, data: 7, text: '7', request };
      },
      encode: () => ({ bytes: '0x01', field: 'data', value: '0x01' }),
      statements: statementsOf,
      sign: async (request: SignRequest, exchange: Exchange) => {
        await slowly('sign', exchange);
        return sign(request);
      },
      approve: async (answer: never, exchange: Exchange) => {
        await slowly('approve', exchange);
        this.#kept.keep(exchange.endpoint.id, answer);
      },
      concluded: (outcome: RequestOutcome, exchange: Exchange) => traceOf(exchange)?.settle(outcome, exchange),
      onResponseSent: (context: { readonly requestId: string }) => {
        const trace = traceOf(context);
        if (trace !== undefined) trace.sent += 1;
      },
    };
  }
}
