import type { Definition, Finding } from '../../plugins-sdk/define.ts';
import { errorAt } from '../findings.ts';

/** Who owns what; what two want is a finding. */
export class Claims {
  readonly findings: Finding[] = [];
  readonly #owners = new Map<string, string>();

  /** @returns whether nobody had it before. */
  claim(what: string, owner: string): boolean {
    const other = this.#owners.get(what);
    if (other === undefined) this.#owners.set(what, owner);
    else this.report(`${owner} cannot own the ${what}: it belongs to ${other}`);
    return other === undefined;
  }

  isFree(what: string): boolean {
    return !this.#owners.has(what);
  }

  report(message: string): void {
    this.findings.push(errorAt('settings.plugins', message));
  }
}

export function plugin({ name }: Definition): string {
  return `plugin "${name}"`;
}
