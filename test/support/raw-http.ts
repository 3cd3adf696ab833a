import { connect } from 'node:net';
import { awaited, eventually, inTime } from './wait.ts';

/** A connection on which a test writes any bytes it likes. */
export interface RawConnection {
  write(bytes: string | Buffer): void;
  /** Writes bytes, and resolves when the system has taken them. */
  sent(bytes: string): Promise<void>;
  /** Closes the sending side only. */
  end(): void;
  destroy(): void;
  /** Everything received so far. */
  readonly text: string;
  /** Resolves when the condition holds. Rejects when the server closes first. */
  until(condition: (text: string) => boolean): Promise<void>;
  /** Resolves with everything received once the server has closed the connection. */
  readonly closed: PromiseLike<string>;
}

/** Opens a connection to the service at this URL. Text is written as Latin-1, so that each character is a byte. */
export function openRaw(url: string): RawConnection {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname.replace(/[[\]]/g, ''));
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk) => (text += chunk));
  // A reset is one way for a server to close a connection.
  socket.on('error', () => undefined);
  const closed = new Promise<string>((resolve) => socket.on('close', () => resolve(text)));
  const received = () => `after ${JSON.stringify(text.slice(-1000))}`;
  return {
    write: (bytes) => void socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
    sent: (bytes) =>
      inTime(new Promise((resolve) => socket.write(Buffer.from(bytes, 'latin1'), () => resolve())), 'room to send'),
    end: () => void socket.end(),
    destroy: () => void socket.destroy(),
    get text() {
      return text;
    },
    closed: awaited(closed, () => `the server to close the connection ${received()}`),
    until: async (condition) => {
      const look = () => {
        const isMet = condition(text);
        if (socket.closed && !isMet) throw new Error(`the server closed the connection ${received()}`);
        return isMet;
      };
      await eventually(look, () => `${condition} ${received()}`);
    },
  };
}

/** Writes these bytes and resolves with all that the server sends until it closes the connection. */
export async function exchangeRaw(url: string, bytes: string | Buffer): Promise<string> {
  const connection = openRaw(url);
  connection.write(bytes);
  return connection.closed;
}

/** The head of a request without its blank line; closes the connection after the answer unless told otherwise. */
export function requestHead(line: string, headers: Readonly<Record<string, string>> = {}): string {
  const all = { Host: 'service', Connection: 'close', ...headers };
  return `${line} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}`;
}

/** One response of a raw exchange. */
export interface RawResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Reads the only response in the text. */
export function parseResponse(text: string): RawResponse {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const status = /^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1];
  if (status === undefined) throw new Error(`no response: ${JSON.stringify(text)}`);
  const headers = fields.map((field) => {
    const [name = '', ...value] = field.split(':');
    return [name.toLowerCase(), value.join(':').trim()];
  });
  return { status: Number(status), headers: Object.fromEntries(headers), body: rest.join('\r\n\r\n') };
}
