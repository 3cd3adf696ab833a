import { Socket } from 'node:net';
import type { buildConnector, Client } from 'undici';
import type { HostNames } from '../host-names/index.ts';
import { undici } from '../lazy.ts';

/** What connections are made with: the same for all of a client. */
export interface Means {
  readonly names: HostNames;
  readonly connector: buildConnector.connector;
}

export function meansWith(names: HostNames): Means {
  // No connect timeout: a call destroys its socket at its own deadline, also one that is still connecting.
  return { names, connector: undici().buildConnector({ timeout: 0, lookup: names.lookup }) };
}

/** One keep-alive socket at a time, and the undici client that speaks HTTP on it. */
export class Connection {
  readonly client: Client;
  #leave: (() => void) | undefined;
  #isLookingUp = false;
  #socket: Socket | undefined;
  /** When the last exchange on the present socket was complete, and how many bytes had come by then. */
  #restingSince: number | undefined;
  #bytesAtRest = 0;

  constructor(origin: string, { names, connector }: Means, keepAliveTimeout: number) {
    this.client = new (undici().Client)(origin, {
      connect: (options, callback) => {
        this.#restingSince = undefined;
        this.#isLookingUp = true;
        this.#leave = names.find(options.hostname, (error) => {
          this.#isLookingUp = false;
          if (error) return queueMicrotask(() => callback(error, null));
          try {
            // Typed as void, but it is the socket, and the only way to reach one that is still connecting.
            const socket: unknown = connector(options, callback);
            this.#socket = socket instanceof Socket ? socket : undefined;
          } catch (failure) {
            callback(failure instanceof Error ? failure : new Error(String(failure)), null);
          }
        });
      },
      allowH2: false,
      // The call's deadline covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout,
    });
  }

  /** Whether the addresses of the server's name are still waited for. */
  get isLookingUp(): boolean {
    return this.#isLookingUp;
  }

  get usable(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  /** Called when an exchange is complete. */
  rest(): void {
    this.#restingSince = performance.now();
    this.#bytesAtRest = this.#bytesRead;
  }

  /** Milliseconds since the last exchange, if nothing has come from the server since; undefined on a new socket, too. */
  get idleFor(): number | undefined {
    if (this.#restingSince === undefined || this.#bytesRead !== this.#bytesAtRest) return undefined;
    return performance.now() - this.#restingSince;
  }

  /** What broke the socket, other than undici closing it in order. */
  get fault(): Error | undefined {
    const error = this.#socket?.errored;
    return error && !(error instanceof undici().errors.InformationalError) ? error : undefined;
  }

  /** Resolves when the socket is closed. */
  async destroy(): Promise<void> {
    this.#leave?.();
    const closed = this.client.destroy();
    // undici leaves a connecting socket alone; with an error it tells the connector, which then lets go.
    if (this.usable) this.#socket?.destroy(new (undici().errors.InformationalError)('abandoned'));
    await closed;
  }

  /** Bytes of HTTP that the present socket has received so far. */
  get #bytesRead(): number {
    return this.#socket?.bytesRead ?? 0;
  }
}
