/** What a worker is told when its process is made. */
export interface WorkerIdentity {
  /** From 1; one that takes the place of another has its number. */
  readonly number: number;
  /** Whether it says what would be the same in every worker. */
  readonly announces: boolean;
  /** Whether the log goes to a terminal that shows colours. */
  readonly colour: boolean;
  /** Of all workers. */
  readonly count: number;
}

/** The variable that holds a worker's identity. */
const VARIABLE = 'SERVICE_WORKER';

/** The variables by which a new process finds its identity. */
export function identityVariables({ number, announces, colour, count }: WorkerIdentity): Record<string, string> {
  return { [VARIABLE]: `${number} ${announces} ${colour} ${count}` };
}

/** The identity of this process, if it is a worker of this service. Nobody else, such as a plugin's own process, gets to see it. */
export function readWorkerIdentity(): WorkerIdentity | undefined {
  const given = process.env[VARIABLE];
  delete process.env[VARIABLE];
  if (given === undefined || process.send === undefined) return undefined;
  const [number, announces, colour, count] = given.split(' ');
  return { number: Number(number), announces: announces === 'true', colour: colour === 'true', count: Number(count) };
}
