/** Builds the OpenAPI document from the parts of all plugins: for the plugins themselves, and for the command `openapi`. */
export { describeService } from '../builtins/openapi/document.ts';
