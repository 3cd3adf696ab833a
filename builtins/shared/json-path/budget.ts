/** The text is no JSONPath, or one that its author may not use. The message shows nothing of a requester's path. */
export class PathError extends Error {
  override readonly name: string = 'PathError';
}

/** Evaluating the path on this document would take too long, though neither need be at fault by itself. */
export class BudgetError extends PathError {
  override readonly name = 'BudgetError';
}

/**
 * The steps that path evaluations may still take together. One step looks at one value; {@link fullBudget} keeps an
 * evaluation below about 80 ms. Pass one object through all evaluations of a request, so that a long list of paths costs
 * no more than one path.
 */
export interface StepBudget {
  steps: number;
}
