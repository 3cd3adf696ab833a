import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

/**
 * Compiles a schema: checks are some thirty times as fast. `undefined` for one that cannot be compiled, such as one
 * whose pattern is no regular expression. An interpreter notices that when it comes to it, and perhaps never.
 */
export function compileSchema(schema: TSchema): Validator | undefined {
  try {
    return Compile(schema);
  } catch {
    return undefined;
  }
}
