import { spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { folderWith } from '../cli/run.ts';

/** Files in PEM of a private authority, and of a certificate that it has made for names and addresses. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Why tests that make certificates are skipped; false where they are not. */
export const withoutOpenssl = spawnSync('openssl', ['version']).status === 0 ? false : 'openssl is not installed';

/** Makes them for a day. @param names such as `DNS:api.test` and `IP:127.0.0.1`. */
export function certificatesFor(t: TestContext, ...names: readonly string[]): Promise<Certificates> {
  return certificatesOf(t, 1, names);
}

function openssl(...words: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', words, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

function newKey(file: string): string[] {
  return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', file];
}

/** Makes keys and certificates in a folder. @param by the authority that signs them, for so many days. */
function signing(file: (name: string) => string, by: string, days: number) {
  const authority = ['-CA', file(`${by}.pem`), '-CAkey', file(`${by}.key`), '-CAcreateserial', '-days', `${days}`];
  return (of: string, name: string, extensions: string) => {
    openssl('req', ...newKey(file(`${of}.key`)), '-subj', `/CN=${name}`, '-out', file('request.pem'));
    const rest = ['-extfile', file(extensions), '-out', file(`${of}.pem`)];
    openssl('x509', '-req', '-in', file('request.pem'), ...authority, ...rest);
  };
}

/** PEM texts of a root, of an authority below it, and of a certificate that this one has made for a name. */
export async function chainFor(t: TestContext, name: string) {
  const folder = await folderWith(t, { leaf: `subjectAltName=${name}\n`, authority: 'basicConstraints=CA:TRUE\n' });
  const file = (of: string) => join(folder, of);
  openssl('req', '-x509', ...newKey(file('root.key')), '-days', '1', '-subj', '/CN=root', '-out', file('root.pem'));
  signing(file, 'root', 1)('middle', 'middle', 'authority');
  signing(file, 'middle', 1)('cert', 'cert', 'leaf');
  const [root = '', intermediate = '', cert = '', key = ''] = await Promise.all(
    ['root.pem', 'middle.pem', 'cert.pem', 'cert.key'].map((of) => readFile(file(of), 'utf8')),
  );
  return { root, intermediate, cert, key };
}

/** @param days for which the certificate is good; -1: it was until yesterday. */
export async function certificatesOf(t: TestContext, days: number, names: readonly string[]): Promise<Certificates> {
  const folder = await folderWith(t, { extensions: `subjectAltName=${names.join(',')}\n` });
  const file = (name: string) => join(folder, name);
  const of = ['-subj', '/CN=private authority', '-out', file('ca.pem')];
  openssl('req', '-x509', ...newKey(file('ca.key')), '-days', '1', ...of);
  signing(file, 'ca', days)('cert', 'service', 'extensions');
  return { ca: file('ca.pem'), cert: file('cert.pem'), key: file('cert.key') };
}
