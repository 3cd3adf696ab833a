/** What a connection and a server may have under way, and how long requests wait for their turn. */
export interface ServerBounds {
  /** Requests of a connection that are read and answered at a time; further ones wait unread until all are answered. */
  readonly requests: number;
  /** Bytes of answers that a client has not taken, from which on no further request of it is read. */
  readonly unread: number;
  /** Milliseconds in which a client must take something of an answer. */
  readonly stall: number;
  /** Milliseconds until the first look whether a client that ended its side is still there; each further look waits twice as long. */
  readonly probe: number;
  /** Requests that are read in one turn of the event loop: it accepts one new connection in each. */
  readonly begun: number;
  /** Requests under way from which on further ones are shed. */
  readonly underWay: number;
  /** Connections whose client has sent more requests than may be read, each with up to 64 KiB of them. */
  readonly held: number;
  /** Milliseconds that connections wait for their turn, or that the event loop is late, before requests are shed. */
  readonly delay: number;
  /** Bytes of all answers that clients have not taken; beyond, connections are closed. */
  readonly allUnread: number;
}

export const BOUNDS: ServerBounds = {
  requests: 16,
  unread: 1024 * 1024,
  stall: 30_000,
  probe: 100,
  begun: 128,
  underWay: 4096,
  held: 128,
  delay: 1000,
  allUnread: 64 * 1024 * 1024,
};
