import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Customization hooks (node:module) for plugins, wherever they lie:
 *
 * - `signed-data-proxy/plugins-sdk` is the SDK of the service that runs. So a folder with a config and a plugin needs no
 *   installation, and there is never a second copy. The package `signed-data-proxy-plugins-sdk` is that SDK, too.
 * - A `.ts` or `.js` file in the syntax of ES modules is one, also where no package.json says `"type": "module"`; so
 *   is what it imports by a relative path. A specifier that ends in `#module` is where that begins.
 * - `plugin-package:?name=…&from=…` is what the module at `from` would get for `name`.
 */
const PACKAGE = 'plugin-package:?';
const MARK = '#module';
const SDK = /^signed-data-proxy-plugins-sdk(?=\/|$)/;
const modules = new Set();

/** A module of the service that runs. */
let own = import.meta.url;

export function initialize(url = own) {
  own = url;
}

export function resolve(specifier, context, next) {
  const name = specifier.replace(SDK, 'signed-data-proxy/plugins-sdk');
  if (/^signed-data-proxy(\/|$)/.test(name)) return next(name, { ...context, parentURL: own });
  if (specifier.startsWith(PACKAGE)) {
    const { name: wanted, from } = Object.fromEntries(new URLSearchParams(specifier.slice(PACKAGE.length)));
    return next(wanted, { ...context, parentURL: from });
  }
  const url = candidate(specifier, context.parentURL);
  if (url === undefined || !isModule(url)) return next(specifier.replace(MARK, ''), context);
  modules.add(url);
  return { url, format: 'module', shortCircuit: true };
}

/** The file that is perhaps to be taken as an ES module. */
function candidate(specifier, parentURL) {
  if (specifier.endsWith(MARK)) return specifier.slice(0, -MARK.length);
  return modules.has(parentURL) && /^\.{1,2}\//.test(specifier) ? new URL(specifier, parentURL).href : undefined;
}

/** A statement of an ES module, at the beginning of a line or, in minified code, behind another one. */
const STATEMENT = /(?:^|[;}]|\*\/)\s*(?:import\b(?!\s*[(.])|export\b)/m;

function isModule(url) {
  if (!/^file:.*\.[jt]s$/.test(url)) return false;
  try {
    return STATEMENT.test(readFileSync(fileURLToPath(url), 'utf8'));
  } catch {
    // No such file: the loader that comes next knows how to say so.
    return false;
  }
}
