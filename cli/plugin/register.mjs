import * as node from 'node:module';
import { register as registerTypeScript } from 'tsx/esm/api';
import * as asModule from '../../config/plugins/plugin-as-module.mjs';
import * as entry from './entry.mjs';

/**
 * Prepares node for `node --import signed-data-proxy/plugins-sdk/register --test price-floor.test.ts`, as the service
 * prepares itself for plugins. The program may be TypeScript, is an ES module even if no package.json says so, and gets
 * this package's SDK from any folder.
 */
registerTypeScript();
// The same hooks as in config/plugins/import.ts.
if (node.registerHooks) for (const { resolve } of [asModule, entry]) node.registerHooks({ resolve });
else
  for (const path of ['../../config/plugins/plugin-as-module.mjs', './entry.mjs']) node.register(path, import.meta.url);
