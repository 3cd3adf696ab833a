interface Complaint {
  readonly hook: string;
  readonly message: string;
}

/** What a harness complains of, each with its hook. */
export function complaintsOf({ complaints }: { readonly complaints: readonly Complaint[] }): [string, string][] {
  return complaints.map(({ hook, message }) => [hook, message]);
}
