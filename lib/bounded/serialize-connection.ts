import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

type Task = () => void;

/**
 * Has the requests of each connection handled one by one, the next once the client has taken the answer. Node bounds neither
 * the requests that it reads ahead nor the answers that nobody takes.
 *
 * @param handle must end the response.
 */
export function serializeConnection(
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): RequestListener {
  const lines = new WeakMap<Socket, Line>();
  return (request, response) => {
    const { socket } = request;
    const line = lines.get(socket) ?? new Line(socket);
    lines.set(socket, line);
    line.add(() => {
      response.once('close', () => line.next());
      handle(request, response);
    });
  };
}

/** What one connection has asked for. */
class Line {
  readonly #socket: Socket;
  readonly #waiting: Task[] = [];
  #isBusy = false;

  constructor(socket: Socket) {
    this.#socket = socket;
    // Whoever reads a body resumes the socket.
    socket.on('resume', () => this.#hold());
  }

  add(task: Task): void {
    if (this.#isBusy) {
      this.#waiting.push(task);
      this.#hold();
    } else {
      this.#isBusy = true;
      task();
    }
  }

  next(): void {
    // In a turn of its own: others are served between two requests of one connection.
    setImmediate(() => {
      if (this.#socket.destroyed) return;
      const task = this.#waiting.shift();
      if (task === undefined) this.#isBusy = false;
      else task();
      if (this.#waiting.length === 0 && this.#socket.isPaused()) this.#socket.resume();
    });
  }

  /** Reads no further while something waits. */
  #hold(): void {
    if (this.#waiting.length > 0) this.#socket.pause();
  }
}
