import type { SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../plugins-sdk/index.ts';

/** Spans that wait to be sent, where the variable does not say. */
const MOST_WAITING = 2048;
/** Milliseconds between two lines. */
const TELL_INTERVAL_MS = 10_000;

/** Drops spans beyond what may wait, as the library would, and says how many. */
export class SpanQueue {
  readonly #log: Log;
  readonly #most = Number(process.env.OTEL_BSP_MAX_QUEUE_SIZE) || MOST_WAITING;
  #waiting = 0;
  #dropped = 0;
  #telling: NodeJS.Timeout | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Keeps from a processor what it has no room for. */
  before(processor: SpanProcessor): SpanProcessor {
    return {
      onStart: (span, context) => processor.onStart(span, context),
      onEnd: (span) => {
        if ((span.spanContext().traceFlags & 1) === 0) return;
        if (this.#waiting >= this.#most) return this.#drop();
        this.#waiting += 1;
        processor.onEnd(span);
      },
      forceFlush: () => processor.forceFlush(),
      shutdown: () => processor.shutdown(),
    };
  }

  /** So many do not wait any more. */
  taken(spans: number): void {
    this.#waiting -= spans;
  }

  /** Says how many were dropped since it was last said. */
  tell(): void {
    clearTimeout(this.#telling);
    this.#telling = undefined;
    if (this.#dropped > 0)
      this.#log.warn('spans were dropped: the collector takes fewer than there are', { count: this.#dropped });
    this.#dropped = 0;
  }

  #drop(): void {
    this.#dropped += 1;
    this.#telling ??= setTimeout(() => this.tell(), TELL_INTERVAL_MS).unref();
  }
}
