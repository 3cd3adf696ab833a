import type { Json } from './kernel.ts';

/** What a running service shows its operators: at `/status` of the metrics port, and by the command `status`. */
export interface Status {
  /**
   * Adds a part. Lists that several plugins show as the same part stand there as one.
   * @param part its name, such as `breakers`. @param read gives its value when it is read; all clients of that port can read it.
   */
  show(part: string, read: () => Json): void;
  /** All parts of the config in force, by name. */
  read(): Readonly<Record<string, Json>>;
}
