/** Puts together what the plugins of a service say of it: for the plugins themselves, and for the command `openapi`. */
export { describeService } from '../builtins/openapi/document.ts';
