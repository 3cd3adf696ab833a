import type { MemoryArea } from '../../plugins-sdk/state/memory-area.ts';

/**
 * An operator's engine for state, in this process: the files and settings of a service that has it.
 * @param areaOf the areas by their names, good or bad.
 */
export function ownEngine(title: string, areaOf: (name: string) => object) {
  const global = `engine of ${title}`;
  Reflect.set(globalThis, global, areaOf);
  const source = `const open = () => ({ start: async () => undefined, doubts: () => [], close: async () => undefined,
    area: globalThis[${JSON.stringify(global)}] });
  const schema = { type: 'object', properties: {} };
  export default { name: 'own-engine', engines: { own: { schema, timeout: 60_000, open } }, setup: () => ({}) };`;
  return { files: { 'engine.mjs': source }, plugin: { source: './engine.mjs' }, state: { type: 'own' } };
}

/** An area whose swaps are told only after a pause, although they have been made. */
export function pausing(area: MemoryArea, pause: (next: string | undefined) => Promise<void> | undefined) {
  const compareAndSet: MemoryArea['compareAndSet'] = async (...args) => {
    const result = await area.compareAndSet(...args);
    await pause(args[2]);
    return result;
  };
  return { compareAndSet, get: area.get.bind(area), takeTokens: area.takeTokens.bind(area) };
}
