import type { Conversion } from '../../cli/import/convert.ts';
import { importDocument } from '../../cli/import/index.ts';
import { merge } from '../../cli/import/merge.ts';
import { emptyText } from '../../cli/import/write.ts';
import { loadConfig } from '../../config/index.ts';
import { parseConfig, type Tree } from '../../config/yaml.ts';
import { definitions } from '../../service/index.ts';

const builtins = definitions();
const wants = () => true;
export const imported = (tree: Tree) => importDocument(tree, { wants });

export const fileText = (made: Conversion) => merge(emptyText(made), made).text;

export const api = (paths: object, more: object = {}) => ({
  ...{ openapi: '3.0.0', info: { title: 'T', version: '1' }, servers: [{ url: 'https://t.example' }], paths },
  ...more,
});
export const json = (schema: unknown = {}) => ({ content: { 'application/json': { schema } } });
export const get = (operation: object) => ({ '/a': { get: { responses: {}, ...operation } } });

/** Loads what was made, and what it is with the suggestion that comes last in force. */
export async function loaded(text: string) {
  const file = '/config.yaml';
  const loadText = (each: string) =>
    loadConfig({ file, tree: parseConfig(each, file), env: { HOME: 'leak' }, builtins, allowUnset: true });
  const last = text.lastIndexOf('        # encoding: ');
  if (last > 0) await loadText(`${text.slice(0, last)}        encoding: ${text.slice(last + 20)}`);
  return loadText(text);
}
