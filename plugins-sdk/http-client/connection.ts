import { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import { undici } from '../lazy.ts';

/** One keep-alive socket at a time, and the undici client that speaks HTTP on it. */
export class Connection {
  readonly client: Client;
  /** Whether the present socket has carried a complete exchange before. */
  reused = false;
  #socket: Socket | undefined;

  constructor(origin: string, connector: buildConnector.connector, keepAliveTimeout: number) {
    this.client = new (undici().Client)(origin, {
      connect: (options, callback) => {
        this.reused = false;
        // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
        const socket: unknown = connector(options, callback);
        this.#socket = socket instanceof Socket ? socket : undefined;
      },
      allowH2: false,
      // The call's deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout,
    });
  }

  get usable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Bytes of HTTP that the present socket has received so far. */
  get bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }

  /** What broke the socket, other than undici closing it in order. */
  get fault(): Error | undefined {
    const error = this.#socket?.errored;
    return error && !(error instanceof undici().errors.InformationalError) ? error : undefined;
  }

  /** Resolves when the socket is closed. */
  async destroy(): Promise<void> {
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    if (this.usable) this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }
}
