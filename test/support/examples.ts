import { fileURLToPath } from 'node:url';

/** An entry of `settings.plugins` for a plugin of `examples/plugins`. */
export function example(name: string, config?: object): { source: string; config?: object } {
  const source = fileURLToPath(new URL(`../../examples/plugins/${name}.ts`, import.meta.url));
  return { source, ...(config && { config }) };
}
