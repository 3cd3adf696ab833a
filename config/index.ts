export { loadEnvironment } from './environment.ts';
export { ConfigErrors, type LocatedFinding, locatedLine } from './findings.ts';
export { type LoadedConfig, loadConfig, type PluginChoice, readSettings } from './load.ts';
export { signingWarning } from './plugins/check-definition.ts';
export { composeSchema } from './schema/publish.ts';
