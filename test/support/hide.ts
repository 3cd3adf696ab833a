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
