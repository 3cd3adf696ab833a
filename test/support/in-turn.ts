import type { Handler } from './upstream.ts';

/** Answers one request after the other, and all further ones as the last of them. */
export function inTurn(...handlers: readonly Handler[]): Handler {
  let asked = 0;
  return (...request) => {
    asked += 1;
    return handlers[Math.min(asked, handlers.length) - 1]?.(...request);
  };
}
