import type { Context, Span } from '@opentelemetry/api';
import {
  type ApiResponse,
  ContextKey,
  type Exchange,
  isRefusal,
  type OutgoingRequest,
} from '../../plugins-sdk/index.ts';
import { askedFor, type FailureClass, failureClassOf, type StageEvent } from '../../plugins-sdk/observe.ts';
import { clientTrace, readHeaders, traceId, writeTraceparent } from './propagation.ts';
import type { Tracing } from './span-export.ts';

/** Routes without spans: supervisors ask them every few seconds, and nobody needs those traces. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);

/** The attribute for the status of a response. The library leaves out undefined attributes. */
const STATUS = 'http.response.status_code';

/** The span of a request, with what its child spans need. Forks of the request share it. */
interface Traced {
  readonly span: Span;
  readonly context: Context;
  readonly isSampled: boolean;
  /** Epoch milliseconds at which the request's clock read 0. The clock is monotonic, like `performance.now`. */
  readonly epoch: number;
}

const requestSpan = new ContextKey<Traced>('requestSpan');

function now({ epoch }: Traced): number {
  return epoch + performance.now();
}

/** Makes the spans of requests. They show where the time went, and nothing of parameters or answers. */
export class RequestSpans {
  readonly #tracing: Tracing;

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  /** Records a stage that has ended, unless no plugin returned anything there. */
  stage({ exchange, stage, milliseconds, outcome }: StageEvent): void {
    const traced = this.#of(exchange);
    if (!traced?.isSampled || outcome === 'silent') return;
    const end = now(traced);
    const attributes = outcome === 'refused' ? { 'sdp.outcome': outcome } : {};
    this.#tracing.tracer.startSpan(stage, { startTime: end - milliseconds, attributes }, traced.context).end(end);
  }

  /** Makes the span of an upstream call. @param ask makes the call; it gets the span's `traceparent`, if there is a span. */
  async call(
    { method }: OutgoingRequest,
    exchange: Exchange,
    ask: (traceparent?: string) => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const traced = this.#of(exchange);
    if (traced === undefined) return ask();
    const { api, tracer } = this.#tracing;
    const attributes = { 'http.request.method': method, ...endpointOf(exchange) };
    const { api: name, name: endpoint } = exchange.endpoint;
    const options = { kind: api.SpanKind.CLIENT, startTime: now(traced), attributes };
    const span = tracer.startSpan(`${method} ${name}/${endpoint}`, options, traced.context);
    try {
      const response = await ask(writeTraceparent(traceparentParts(span)));
      span.setAttributes({ [STATUS]: response.status });
      return response;
    } catch (error) {
      const refusal = isRefusal(error) ? error : undefined;
      span.setAttributes({ [STATUS]: refusal?.upstreamStatus });
      this.#failed(span, refusal && failureClassOf(refusal));
      throw error;
    } finally {
      span.end(now(traced));
    }
  }

  /** Records the failure of a request, before its response is out. */
  failed(exchange: Exchange, failure: FailureClass | undefined): void {
    const span = this.#of(exchange)?.span;
    if (span !== undefined && failure !== undefined) this.#failed(span, failure);
  }

  /** Ends the span of a request once its response is out. Work that goes on still adds child spans. */
  response(exchange: Exchange, status: number): void {
    const traced = this.#of(exchange);
    if (traced === undefined) return;
    const { span } = traced;
    span.setAttributes({ ...endpointOf(exchange), [STATUS]: status });
    if (status >= 500) span.setStatus({ code: this.#tracing.api.SpanStatusCode.ERROR });
    span.end(now(traced));
  }

  /** Returns the span of a request, which is made before anything forks the request; undefined for a probe. */
  #of(exchange: Exchange): Traced | undefined {
    const known = requestSpan.get(exchange);
    if (known !== undefined || PROBES.has(exchange.route)) return known;
    readHeaders(exchange);
    const { api } = this.#tracing;
    const epoch = Date.now() - performance.now();
    const span = this.#start(exchange, epoch + performance.now() - exchange.elapsed());
    const { traceId: id, isSampled } = traceparentParts(span);
    const traced = { span, context: api.trace.setSpan(api.ROOT_CONTEXT, span), isSampled, epoch };
    requestSpan.set(exchange, traced);
    traceId.set(exchange, id);
    return traced;
  }

  /** Starts a server span for a client's request, or a child span for a request that a plugin makes on its behalf. */
  #start(exchange: Exchange, startTime: number): Span {
    const { api, tracer } = this.#tracing;
    const client = askedFor.get(exchange);
    const within = client && this.#of(client);
    if (within !== undefined) return tracer.startSpan('ask', { startTime }, within.context);
    const { method, route } = exchange;
    const attributes = { 'http.request.method': method, 'http.route': route };
    const options = { kind: api.SpanKind.SERVER, startTime, attributes };
    return tracer.startSpan(`${method} ${route}`, options, this.#parentOf(exchange));
  }

  /** Returns the client's span as the parent, if it names one. Its `tracestate` goes upstream only, not to the collector. */
  #parentOf(exchange: Exchange): Context {
    const { ROOT_CONTEXT, trace, TraceFlags } = this.#tracing.api;
    const client = clientTrace.get(exchange);
    if (client === undefined) return ROOT_CONTEXT;
    const traceFlags = client.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    const { traceId: id, parentId: spanId } = client;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId: id, spanId, traceFlags, isRemote: true });
  }

  #failed(span: Span, failure: FailureClass | undefined): void {
    span.setAttributes({ 'error.type': failure });
    span.setStatus({ code: this.#tracing.api.SpanStatusCode.ERROR });
  }
}

function endpointOf({ resolved }: Exchange): Record<string, string> {
  if (resolved === undefined) return {};
  const { api, name, id, mode } = resolved;
  return { 'sdp.api': api, 'sdp.endpoint': name, 'sdp.endpoint_id': id, 'sdp.mode': mode };
}

/** Returns what the `traceparent` of a span says. */
function traceparentParts(span: Span) {
  const { traceId: id, spanId: parentId, traceFlags } = span.spanContext();
  return { traceId: id, parentId, isSampled: (traceFlags & 1) === 1 };
}
