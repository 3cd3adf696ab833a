/** The service's processes on this machine, as one of them sees them. */
export interface Workers {
  /** How many there are: each may let in such a part of a limit. */
  readonly count: number;
  /** Says what this process adds to a topic whenever it is asked; in the place of what was said of the topic before. */
  offer(topic: string, own: () => Promise<unknown>): void;
  /**
   * Asks every process what it adds to a topic. Values travel as JSON.
   * @returns the values, that of this process first, without processes that offered nothing or do not answer within two seconds.
   */
  gather(topic: string): Promise<unknown[]>;
}
