import type { Observer } from '../kernel/hooks.ts';
import type { Registration } from '../kernel/registry.ts';

/** Joins the observers of many plugins into one. A member that no plugin has is absent. Their errors go to `complain`. */
export function observeAll(
  plugins: readonly Registration[],
  complain: (plugin: string, error: unknown) => void,
): Observer {
  const tell = <A extends unknown[]>(pick: (observe: Observer) => ((...args: A) => unknown) | undefined) => {
    const listeners = plugins.flatMap(({ name, plugin: { observe = {} } }) => {
      const listen = pick(observe)?.bind(observe);
      return listen === undefined ? [] : [{ name, listen }];
    });
    if (listeners.length === 0) return undefined;
    return (...args: A): void => {
      for (const { name, listen } of listeners) {
        try {
          const result = listen(...args);
          if (result instanceof Promise) result.catch((error) => complain(name, error));
        } catch (error) {
          complain(name, error);
        }
      }
    };
  };
  const stage = tell((observe) => observe.stage);
  const call = tell((observe) => observe.call);
  const response = tell((observe) => observe.response);
  return { ...(stage && { stage }), ...(call && { call }), ...(response && { response }) };
}
