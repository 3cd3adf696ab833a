/** The three members of an encoding. */
export type Field = 'type' | 'path' | 'times';

/** A fault of an encoding, and the member that has it. */
export class PlanError extends Error {
  override readonly name: string = 'PlanError';
  readonly field: Field;

  constructor(field: Field, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}
