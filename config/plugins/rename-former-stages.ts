import type { Behaviour } from '../../plugins-sdk/define.ts';
import { formerStages, isFormerStage } from '../../plugins-sdk/former-stages.ts';
import { PluginProblem } from './plugin-problem.ts';

/**
 * Gives functions that a plugin has under a stage's former name the present one; a plugin without any stays as it is.
 * @param warn told of each former name.
 * @throws PluginProblem for two names of one stage
 */
export function renameFormerStages(
  made: Behaviour,
  hooks: Readonly<Record<string, unknown>>,
  warn: (message: string) => void,
): Behaviour {
  const former = Object.keys(hooks).filter(isFormerStage);
  if (former.length === 0) return made;
  const renamed = { ...hooks };
  for (const name of former) {
    const present = formerStages[name];
    if (Object.hasOwn(hooks, present))
      throw new PluginProblem(`"hooks" has "${name}" and "${present}", which are one stage: leave "${name}" out`);
    delete renamed[name];
    renamed[present] = hooks[name];
    warn(`the hook "${name}" is called "${present}" now: rename it, since the next release will not know "${name}"`);
  }
  // What setup returned may be frozen, or have methods that only work on itself.
  const { routes, observe } = made;
  const methods = { vary: made.vary?.bind(made), start: made.start?.bind(made), stop: made.stop?.bind(made) };
  return { hooks: renamed, routes, observe, ...methods } as Behaviour;
}
