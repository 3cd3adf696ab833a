import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Customization hooks (node:module) for plugins, wherever they lie:
 *
 * - `signed-data-proxy/plugins-sdk` is the SDK of the service that runs. So a folder with a config and a plugin needs no
 *   installation, and there is never a second copy. The package `signed-data-proxy-plugins-sdk` is that SDK, too.
 * - `signed-data-proxy/lib/…` and `signed-data-proxy/builtins/shared/…` are files beside this one. Their SDK is that of the service, too.
 * - A `.ts` or `.js` file in the syntax of ES modules is one, also where no package.json says `"type": "module"`; so
 *   is what it imports by a relative path. A specifier that ends in `#module` is where that begins.
 * - `plugin-package:?name=…&from=…` is what the module at `from` would get for `name`.
 */
const PACKAGE = 'plugin-package:?';
const MARK = '#module';
const SDK = /^signed-data-proxy-plugins-sdk(?=\/|$)/;
const FILES = /^signed-data-proxy\/(?:lib|builtins\/shared)\//;
const ENTRY = /^plugins-sdk\/\w+(?=\.[jt]s$)/;
const modules = new Set();

/** A module of the service that runs, and where that module lies in the package, from which it may be bundled. */
let own = import.meta.url;
let source = own;

export function initialize(urls = { own, source }) {
  ({ own, source } = urls);
}

export function resolve(specifier, context, next) {
  const name = specifier.replace(SDK, 'signed-data-proxy/plugins-sdk');
  if (FILES.test(name)) return next(name, { ...context, parentURL: source });
  if (/^signed-data-proxy(\/|$)/.test(name)) return next(name, { ...context, parentURL: own });
  const entry = own === source ? undefined : entryOfSdk(specifier, context.parentURL);
  if (entry !== undefined) return next(entry, { ...context, parentURL: own });
  if (specifier.startsWith(PACKAGE)) {
    const { name: wanted, from } = Object.fromEntries(new URLSearchParams(specifier.slice(PACKAGE.length)));
    return next(wanted, { ...context, parentURL: from });
  }
  const url = candidate(specifier, context.parentURL);
  if (url === undefined || !isModule(url)) return next(specifier.replace(MARK, ''), context);
  modules.add(url);
  return { url, format: 'module', shortCircuit: true };
}

/** The name of what a file of this package imports by a relative path from the SDK. */
function entryOfSdk(specifier, parentURL = '') {
  const root = new URL('../../', source).href;
  if (!specifier.startsWith('.') || !parentURL.startsWith(root)) return undefined;
  const [path] = new URL(specifier, parentURL).href.slice(root.length).match(ENTRY) ?? [];
  return path && `signed-data-proxy/${path.replace(/\/index$/, '')}`;
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
