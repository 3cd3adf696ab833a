/** The SDK's entry for plugins with config keys: schemas, the keys that the service itself reads, and checks beyond schemas. */

export { httpTarget } from '../lib/http/target.ts';
export { LONGEST_TIMER } from '../lib/time.ts';
export {
  apiPath,
  authPath,
  checkAddress,
  checkAuthorities,
  checkHeaderName,
  checkHost,
  checkPlainHttp,
  type DeclaredParameter,
  declaredParameters,
  isHeaderValue,
} from './checks.ts';
export { type ConfigKey, optionalKey } from './config-key.ts';
export {
  type CheckContext,
  type EndpointDraft,
  errorAt as error,
  type Finding,
  warningAt as warning,
} from './define.ts';
export * from './keys.ts';
export { closedObject } from './schema/close.ts';
export { compileSchema } from './schema/compile.ts';
export { DURATION } from './schema/duration.ts';
export { explain } from './schema/explain.ts';
export { childPath, printable } from './schema/path.ts';
