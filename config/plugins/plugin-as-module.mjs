import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Customization hooks (node:module) for plugins in any folder:
 *
 * - `signed-data-proxy/plugins-sdk` resolves to the SDK of the running service. So a folder with a config and a plugin needs
 *   no installation, and there is never a second copy. `signed-data-proxy-plugins-sdk` resolves to that SDK, too.
 * - `signed-data-proxy/lib/…` and `signed-data-proxy/builtins/shared/…` resolve to files of this package, which use that SDK.
 * - A `.ts` or `.js` file with ES module syntax is loaded as an ES module, even if no package.json says `"type": "module"`. So
 *   is each such file that it imports by a relative path. The first one has a specifier that ends in `#module`.
 * - `plugin-package:?name=…&from=…` resolves `name` as the module at `from` would.
 */
const PACKAGE = 'plugin-package:?';
const MARK = '#module';
const SDK = /^signed-data-proxy-plugins-sdk(?=\/|$)/;
const FILES = /^signed-data-proxy\/(?:lib|builtins\/shared)\//;
const ENTRY = /^plugins-sdk\/\w+(?=\.[jt]s$)/;
const modules = new Set();

/** The URL of a module of the running service, and that of its source in the package. They differ if the service is bundled. */
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

/** Returns the package name of the SDK's entry that a file of this package imports by a relative path. */
function entryOfSdk(specifier, parentURL = '') {
  const root = new URL('../../', source).href;
  if (!specifier.startsWith('.') || !parentURL.startsWith(root)) return undefined;
  const [path] = new URL(specifier, parentURL).href.slice(root.length).match(ENTRY) ?? [];
  return path && `signed-data-proxy/${path.replace(/\/index$/, '')}`;
}

/** Returns the URL of a file that may have to be loaded as an ES module. */
function candidate(specifier, parentURL) {
  if (specifier.endsWith(MARK)) return specifier.slice(0, -MARK.length);
  return modules.has(parentURL) && /^\.{1,2}\//.test(specifier) ? new URL(specifier, parentURL).href : undefined;
}

/** Matches a statement of an ES module, at the beginning of a line or, in minified code, after another statement. */
const STATEMENT = /(?:^|[;}]|\*\/)\s*(?:import\b(?!\s*[(.])|export\b)/m;

function isModule(url) {
  if (!/^file:.*\.[jt]s$/.test(url)) return false;
  try {
    return STATEMENT.test(readFileSync(fileURLToPath(url), 'utf8'));
  } catch {
    // There is no such file: the next loader reports it.
    return false;
  }
}
