import type { HookStage } from './kernel.ts';

/** Stages by the names that they had before. Plugins may use these for one release, and are told the present one. */
export const formerStages = {
  read: 'parseBody',
  deliver: 'present',
  prove: 'attest',
  release: 'approve',
  settle: 'concluded',
} as const satisfies Readonly<Record<string, HookStage>>;

export type FormerStage = keyof typeof formerStages;

export function isFormerStage(name: string): name is FormerStage {
  return Object.hasOwn(formerStages, name);
}
