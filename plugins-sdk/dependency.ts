import type { Endpoint } from './kernel.ts';

/** Something outside the process that endpoints need. `GET /ready` names those that are away. */
export interface Dependency {
  /** As `/ready` names it. */
  readonly name: string;
  /** Whether it did what it was last asked for. */
  isAvailable(): boolean;
  /** Whether an endpoint cannot be served without it. */
  isNeeded(endpoint: Endpoint): boolean;
}
