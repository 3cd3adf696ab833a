import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { freePort } from './redis-server.ts';

/** When a connection is cut: before the server hears of a command, before its answer gets through, or after. */
export type Cut = 'request' | 'reply' | 'after';

/** Stands before a server, may lead to another one, and cuts connections. */
export class CuttingProxy {
  readonly port: number;
  /** Where new connections lead. */
  target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: Cut | undefined;

  private constructor(port: number, target: number) {
    this.port = port;
    this.target = target;
    this.#server = createServer((client) => this.#connect(client));
  }

  static async start(t: TestContext, target: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(await freePort(), target);
    proxy.#server.listen(proxy.port, '127.0.0.1');
    await once(proxy.#server, 'listening');
    t.after(() => {
      proxy.#server.close();
      for (const socket of proxy.#sockets) socket.destroy();
    });
    return proxy;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  /** Cuts at the next command, once. */
  cutAt(cut: Cut): void {
    this.#cut = cut;
  }

  #connect(client: Socket): void {
    const server = connect(this.target, '127.0.0.1');
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', end);
    }
    let cut: Cut | undefined;
    client.on('data', (data) => {
      cut = this.#cut;
      this.#cut = undefined;
      if (cut === 'request') end();
      else server.write(data);
    });
    server.on('data', (data) => {
      if (cut === 'reply') end();
      else if (cut === 'after') client.write(data, end);
      else client.write(data);
    });
  }
}
