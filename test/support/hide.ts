import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Words for node's command line by which packages cannot be required, as if they were not there or not built. */
export function hide(...names: string[]): string[] {
  const preload = `
    import Module from 'node:module';
    const load = Module._load;
    Module._load = function (request, ...rest) {
      if (${JSON.stringify(names)}.includes(request)) throw new Error('No native build was found');
      return Reflect.apply(load, this, [request, ...rest]);
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
}

/** Words for node's command line by which no module of a package is found, as if it were not installed. */
export function leaveOut(name: string): string[] {
  const preload = `
    import Module from 'node:module';
    const resolve = Module._resolveFilename;
    Module._resolveFilename = function (request, ...rest) {
      if (request !== ${JSON.stringify(name)} && !request.startsWith(${JSON.stringify(`${name}/`)}))
        return Reflect.apply(resolve, this, [request, ...rest]);
      throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
    };`;
  return ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
}

/** Words for node's command line by which a package cannot be imported, as if it were not installed. */
export function notInstalled(name: string): string[] {
  const hook = `export async function resolve(name, context, next) {
    if (name === ${JSON.stringify(name)}) throw Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' });
    return next(name, context);
  }`;
  const url = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`;
  return ['--import', url(`import { register } from 'node:module'; register(${JSON.stringify(url(hook))});`)];
}

/** What a module writes to stdout where a package is not installed, or to stderr if nothing; it runs in the project's folder. */
export function outputWithout(name: string, program: string): string {
  const words = ['--import', 'tsx', ...notInstalled(name), '--input-type=module', '-e', program];
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
  const { stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8', cwd, timeout: 300_000 });
  return stdout || stderr;
}
