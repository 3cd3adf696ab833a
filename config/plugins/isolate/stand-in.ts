import type { Sketch } from './protocol.ts';

class NoPlugin {}

/** A value of the same shape as one in another process, for checks of its shape. */
export function standIn(sketch: Sketch): unknown {
  switch (sketch.is) {
    case 'plain':
      return sketch.value;
    case 'list':
      return sketch.items?.map(standIn) ?? [];
    case 'function':
      return () => undefined;
    case 'class':
      return NoPlugin;
    case 'object':
      return Object.fromEntries(Object.entries(sketch.members).map(([key, member]) => [key, standIn(member)]));
    default:
      return undefined;
  }
}
