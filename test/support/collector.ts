import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { eventually } from './wait.ts';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

/** A span as the collector got it; ids in hex, '' for none. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'internal' | 'server' | 'client';
  readonly attributes: Attributes;
  readonly isError: boolean;
  /** Epoch nanoseconds. */
  readonly start: bigint;
  readonly end: bigint;
  readonly resource: Attributes;
  readonly scope: string;
}

/** A collector of OpenTelemetry, by OTLP over HTTP in protobuf. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** How many spans it did not take. */
  refused(): number;
  /** The status that requests get from now on. */
  answer(status: number): void;
  /** Resolves when `condition` holds; it is looked at again and again. */
  until(condition: (spans: readonly CollectedSpan[]) => boolean): Promise<readonly CollectedSpan[]>;
  close(): Promise<void>;
}

/** Starts a collector on loopback. */
export async function startCollector(): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  let status = 200;
  let refused = 0;
  const server = createServer(async (req, res) => {
    const body = await buffer(req);
    requests.push({ path: req.url ?? '', headers: req.headers });
    const sent = spansIn(req.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body);
    if (status === 200) spans.push(...sent);
    else refused += sent.length;
    res.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    refused: () => refused,
    answer: (next) => {
      status = next;
    },
    until: (condition) => eventually(() => condition(spans) && spans, String(condition)),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const KINDS = ['internal', 'internal', 'server', 'client'] as const;

/** Reads an `ExportTraceServiceRequest`; the numbers are those of opentelemetry-proto. */
function spansIn(request: Buffer): CollectedSpan[] {
  return parts(request, 1).flatMap((resourceSpans) => {
    const resource = attributesIn(parts(resourceSpans, 1)[0] ?? Buffer.alloc(0), 1);
    return parts(resourceSpans, 2).flatMap((scopeSpans) => {
      const scope = text(parts(scopeSpans, 1)[0] ?? Buffer.alloc(0), 1);
      return parts(scopeSpans, 2).map((span) => spanIn(span, resource, scope));
    });
  });
}

function spanIn(span: Buffer, resource: Attributes, scope: string): CollectedSpan {
  const hex = (field: number) => (parts(span, field)[0] ?? Buffer.alloc(0)).toString('hex');
  const [status = Buffer.alloc(0)] = parts(span, 15);
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentId: hex(4),
    traceState: text(span, 3),
    name: text(span, 5),
    kind: KINDS[Number(numbers(span, 6)[0] ?? 0n)] ?? 'internal',
    attributes: attributesIn(span, 9),
    isError: numbers(status, 3)[0] === 2n,
    start: numbers(span, 7)[0] ?? 0n,
    end: numbers(span, 8)[0] ?? 0n,
    resource,
    scope,
  };
}

function attributesIn(message: Buffer, field: number): Attributes {
  return Object.fromEntries(
    parts(message, field).map((pair) => [text(pair, 1), valueIn(parts(pair, 2)[0] ?? Buffer.alloc(0))]),
  );
}

function valueIn(value: Buffer): string | number | boolean {
  const [isTrue] = numbers(value, 2);
  const [integer] = numbers(value, 3);
  if (isTrue !== undefined) return isTrue === 1n;
  return integer === undefined ? text(value, 1) : Number(integer);
}

function text(message: Buffer, field: number): string {
  return parts(message, field)[0]?.toString() ?? '';
}

function parts(message: Buffer, field: number): Buffer[] {
  return fieldsIn(message).flatMap(([number, value]) => (number === field && Buffer.isBuffer(value) ? [value] : []));
}

function numbers(message: Buffer, field: number): bigint[] {
  return fieldsIn(message).flatMap(([number, value]) => (number === field && typeof value === 'bigint' ? [value] : []));
}

/** The fields of a protobuf message, in order. */
function fieldsIn(message: Buffer): [number: number, value: bigint | Buffer][] {
  const fields: [number, bigint | Buffer][] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    if (at > message.length) throw new Error('a protobuf message that ends early');
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const key = Number(varint());
    const type = key & 7;
    if (type === 0) fields.push([key >> 3, varint()]);
    else if (type === 1) fields.push([key >> 3, take(8).readBigUInt64LE()]);
    else if (type === 2) fields.push([key >> 3, take(Number(varint()))]);
    else if (type === 5) fields.push([key >> 3, BigInt(take(4).readUInt32LE())]);
    else throw new Error(`a protobuf field of type ${type}`);
  }
  return fields;
}
