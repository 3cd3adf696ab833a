export { signingWarning } from '../plugins-sdk/host/check-definition.ts';
export { loadEnvironment } from './environment.ts';
export { ConfigErrors, type LocatedFinding, locatedLine } from './findings.ts';
export { type LoadedConfig, loadConfig, readSettings } from './load.ts';
export type { PluginChoice } from './plugins/load.ts';
export { composeSchema } from './schema/publish.ts';
