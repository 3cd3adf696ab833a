import * as node from 'node:module';
import { register as registerTypeScript } from 'tsx/esm/api';
import * as asModule from '../../config/plugins/plugin-as-module.mjs';
import * as entry from './entry.mjs';

/**
 * For `node --import signed-data-proxy/plugins-sdk/register --test price-floor.test.ts`: what the service does for the
 * plugins that it loads is done for the program that node is to run. It may be TypeScript, is an ES module also where no
 * package.json says so, and gets this package's SDK in whatever folder it lies.
 */
registerTypeScript();
// As config/plugins/import.ts has them.
if (node.registerHooks) for (const { resolve } of [asModule, entry]) node.registerHooks({ resolve });
else
  for (const path of ['../../config/plugins/plugin-as-module.mjs', './entry.mjs']) node.register(path, import.meta.url);
