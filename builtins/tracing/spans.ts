import type { Context, Span } from '@opentelemetry/api';
import { writeTraceparent } from '../../lib/http/trace-context.ts';
import {
  type ApiResponse,
  ContextKey,
  type Exchange,
  isRefusal,
  type OutgoingRequest,
} from '../../plugins-sdk/index.ts';
import { askedFor, type FailureClass, failureClassOf, type StageEvent } from '../../plugins-sdk/observe.ts';
import { clientTrace, readHeaders, traceId } from './propagation.ts';
import type { Tracing } from './span-export.ts';

/** What supervisors ask every few seconds: nobody looks for the trace of that. */
const PROBES: ReadonlySet<string> = new Set(['/health', '/ready']);

/** The span of a request, as its children need it; forks of the request have the same one. */
interface Traced {
  readonly span: Span;
  readonly context: Context;
  readonly isSampled: boolean;
  /** Epoch milliseconds at which this request's clock began, which goes as steadily as `performance.now` does. */
  readonly epoch: number;
}

const requestSpan = new ContextKey<Traced>('requestSpan');

function now({ epoch }: Traced): number {
  return epoch + performance.now();
}

/** Makes the spans of requests. They say where the time went, and nothing of what was asked or answered. */
export class RequestSpans {
  readonly #tracing: Tracing;

  constructor(tracing: Tracing) {
    this.#tracing = tracing;
  }

  /** A stage has ended; one at which nobody had something to say has no span. */
  stage({ exchange, stage, milliseconds, outcome }: StageEvent): void {
    const traced = this.#of(exchange);
    if (!traced?.isSampled || outcome === 'silent') return;
    const end = now(traced);
    const attributes = outcome === 'refused' ? { 'sdp.outcome': outcome } : {};
    this.#tracing.tracer.startSpan(stage, { startTime: end - milliseconds, attributes }, traced.context).end(end);
  }

  /** @param ask calls the upstream. @param traceparent of the call. */
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
      const response = await ask(traceparentOf(span));
      this.#status(span, response.status);
      return response;
    } catch (error) {
      const refusal = isRefusal(error) ? error : undefined;
      this.#status(span, refusal?.upstreamStatus);
      this.#failed(span, refusal && failureClassOf(refusal));
      throw error;
    } finally {
      span.end(now(traced));
    }
  }

  /** A request has failed, and its response is not out yet. */
  failed(exchange: Exchange, failure: FailureClass | undefined): void {
    const span = this.#of(exchange)?.span;
    if (span !== undefined && failure !== undefined) this.#failed(span, failure);
  }

  /** The response is out. Of work that goes on there are spans under the same one. */
  response(exchange: Exchange, status: number): void {
    const traced = this.#of(exchange);
    if (traced === undefined) return;
    const { span } = traced;
    span.setAttributes(endpointOf(exchange));
    this.#status(span, status);
    if (status >= 500) span.setStatus({ code: this.#tracing.api.SpanStatusCode.ERROR });
    span.end(now(traced));
  }

  /** Made before anything forks the request. */
  #of(exchange: Exchange): Traced | undefined {
    const known = requestSpan.get(exchange);
    if (known !== undefined || PROBES.has(exchange.route)) return known;
    readHeaders(exchange);
    const { api } = this.#tracing;
    const epoch = Date.now() - performance.now();
    const span = this.#start(exchange, epoch + performance.now() - exchange.elapsed());
    const { traceId: id, traceFlags } = span.spanContext();
    const isSampled = (traceFlags & api.TraceFlags.SAMPLED) !== 0;
    const traced = { span, context: api.trace.setSpan(api.ROOT_CONTEXT, span), isSampled, epoch };
    requestSpan.set(exchange, traced);
    traceId.set(exchange, id);
    return traced;
  }

  /** A client's request has a span of the server; one that a plugin asks for has a span under that. */
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

  /** The client's span, if it names one. Its `tracestate` goes upstream, and is nothing for the collector. */
  #parentOf(exchange: Exchange): Context {
    const { ROOT_CONTEXT, trace, TraceFlags } = this.#tracing.api;
    const client = clientTrace.get(exchange);
    if (client === undefined) return ROOT_CONTEXT;
    const traceFlags = client.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
    const { traceId: id, parentId: spanId } = client;
    return trace.setSpanContext(ROOT_CONTEXT, { traceId: id, spanId, traceFlags, isRemote: true });
  }

  #status(span: Span, status: number | undefined): void {
    if (status !== undefined) span.setAttribute('http.response.status_code', status);
  }

  #failed(span: Span, failure: FailureClass | undefined): void {
    if (failure !== undefined) span.setAttribute('error.type', failure);
    span.setStatus({ code: this.#tracing.api.SpanStatusCode.ERROR });
  }
}

function endpointOf({ resolved }: Exchange): Record<string, string> {
  if (resolved === undefined) return {};
  const { api, name, id, mode } = resolved;
  return { 'sdp.api': api, 'sdp.endpoint': name, 'sdp.endpoint_id': id, 'sdp.mode': mode };
}

function traceparentOf(span: Span): string {
  const { traceId: id, spanId: parentId, traceFlags } = span.spanContext();
  return writeTraceparent({ traceId: id, parentId, isSampled: (traceFlags & 1) === 1 });
}
