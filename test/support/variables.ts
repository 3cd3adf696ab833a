import type { Lifetime } from './lifetime.ts';

/** Has this process the variables until the test or the suite ends. */
export function withVariables(lifetime: Lifetime, variables: Readonly<Record<string, string>>): void {
  Object.assign(process.env, variables);
  lifetime.after(async () => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
}
