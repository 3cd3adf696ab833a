import type { StateArea } from './state/area.ts';

/** The processes of one service on one machine, as a plugin in one of them sees them. */
export interface Workers {
  /** Says what this process adds to a topic whenever it is asked; in the place of what was said of the topic before. */
  offer(topic: string, own: () => Promise<unknown>): void;
  /**
   * Asks every process what it adds to a topic. Values travel as JSON.
   * @returns the values, that of this process first; whoever does not answer within two seconds, or has offered nothing, is left out.
   */
  gather(topic: string): Promise<unknown[]>;
  /**
   * Takes from a bucket of this process, whose `max` is divided by the number of processes, rounded up: as `StateArea.takeTokens`.
   * @param key of all features: begin it with the name of yours.
   */
  readonly takeTokens: StateArea['takeTokens'];
}
