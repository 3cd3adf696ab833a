import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { freePort } from './redis-server.ts';

/** When a connection is cut: before the server hears of a command, before its answer gets through, or after. */
export type Cut = 'request' | 'reply' | 'after';

/** Stands before a server, may lead to another one, and cuts connections. */
export class CuttingProxy {
  readonly port: number;
  /** When it let nobody through, each time. */
  readonly refusedAt: number[] = [];
  /** Where new connections lead. */
  target: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #cut: Cut | undefined;
  /** What a command must have in it to be the one at which it cuts. */
  #text = '';
  #isAway = false;
  #staysAway = false;

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

  /** Cuts at the next command, or the next with that text in it, once. @param staysAway whether nobody gets through from then on. */
  cutAt(cut: Cut, text = '', staysAway = false): void {
    this.#cut = cut;
    this.#text = text;
    this.#staysAway = staysAway;
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** Ends all connections, and lets nobody through until it is told so. */
  set isAway(isAway: boolean) {
    this.#isAway = isAway;
    if (isAway) for (const socket of this.#sockets) socket.destroy();
  }

  #connect(client: Socket): void {
    if (this.#isAway) {
      this.refusedAt.push(performance.now());
      client.destroy();
      return;
    }
    const server = connect(this.target, '127.0.0.1');
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket
        .on('error', () => undefined)
        .on('close', () => {
          this.#sockets.delete(socket);
          end();
        });
    }
    let cut: Cut | undefined;
    client.on('data', (data) => {
      // What is sent after the command that is meant may come before its answer.
      if (cut === undefined && data.includes(this.#text)) {
        cut = this.#cut;
        this.#cut = undefined;
      }
      if (cut === 'request') end();
      else server.write(data);
    });
    server.on('data', (data) => {
      if (cut === 'reply') {
        if (this.#staysAway) this.isAway = true;
        end();
      } else if (cut === 'after') client.write(data, end);
      else client.write(data);
    });
  }
}
