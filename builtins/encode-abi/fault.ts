/** The three members of an encoding. */
export type Field = 'type' | 'path' | 'times';

/** What is wrong with an encoding, and with which member. */
export class PlanError extends Error {
  override readonly name: string = 'PlanError';
  readonly field: Field;

  constructor(field: Field, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}
