import { register } from 'node:module';
import { register as registerTypeScript } from 'tsx/esm/api';

/**
 * For `node --import signed-data-proxy/plugins-sdk/register --test price-floor.test.ts`: what the service does for the
 * plugins that it loads is done for the program that node is to run. It may be TypeScript, is an ES module also where no
 * package.json says so, and gets this package's SDK in whatever folder it lies.
 */
registerTypeScript();
register('../../config/plugins/as-module.mjs', import.meta.url);
register('./entry.mjs', import.meta.url);
