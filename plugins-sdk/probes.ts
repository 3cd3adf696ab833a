import type { Phase } from './define.ts';
import type { Address } from './hex.ts';
import type { HttpResponse } from './kernel.ts';

/** What supervisors ask: whether the service is up and who signs, and whether it wants requests. By path. */
export function probes(node: Address, phase: () => Phase): Readonly<Record<'/health' | '/ready', () => HttpResponse>> {
  const health = { status: 200, body: JSON.stringify({ status: 'ok', node }) };
  return {
    '/health': () => health,
    '/ready': () => {
      const ready = phase() === 'serving';
      return { status: ready ? 200 : 503, body: JSON.stringify({ status: ready ? 'ready' : phase() }) };
    },
  };
}
