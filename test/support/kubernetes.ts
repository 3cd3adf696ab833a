import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Deployment, StatefulSet } from 'kubernetes-types/apps/v1.d.ts';
import type { ConfigMap, Container, PodSpec, Secret, Service } from 'kubernetes-types/core/v1.d.ts';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { parseAllDocuments } from 'yaml';
import { PACKAGE_ROOT } from '../cli/run.ts';

export const FOLDER = join(PACKAGE_ROOT, 'examples/deploy');
const text = readFileSync(join(FOLDER, 'kubernetes.yaml'), 'utf8');
export const documents = parseAllDocuments(text, { uniqueKeys: true, strict: true });
export const objects = documents.map((document): { kind: string; metadata: { name: string } } => document.toJS());

interface Kinds {
  Deployment: Deployment;
  StatefulSet: StatefulSet;
  Service: Service;
  Secret: Secret;
  ConfigMap: ConfigMap;
  NetworkPolicy: NetworkPolicy;
  PodDisruptionBudget: PodDisruptionBudget;
}

/** Where the types of each kind are. */
export const GROUPS = {
  Deployment: 'apps/v1',
  StatefulSet: 'apps/v1',
  Service: 'core/v1',
  Secret: 'core/v1',
  ConfigMap: 'core/v1',
  NetworkPolicy: 'networking/v1',
  PodDisruptionBudget: 'policy/v1',
};

export function object<Kind extends keyof Kinds>(kind: Kind, name: string): Kinds[Kind] {
  const [found, ...more] = objects.filter(({ kind: other, metadata }) => other === kind && metadata.name === name);
  assert.ok(found !== undefined && more.length === 0, `${kind} ${name}`);
  return found as unknown as Kinds[Kind];
}

export function podOf(
  kind: 'Deployment' | 'StatefulSet',
  name: string,
): { readonly pod: PodSpec; readonly container: Container } {
  const pod = object(kind, name).spec?.template.spec;
  const [container, ...more] = pod?.containers ?? [];
  assert.ok(pod && container && more.length === 0);
  return { pod, container };
}
