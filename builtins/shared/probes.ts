import type { HttpResponse } from '../../plugins-sdk/kernel.ts';
import type { Services } from '../../plugins-sdk/services.ts';

type Asked = Pick<Services, 'node' | 'phase' | 'shared' | 'endpoints' | 'needsState'>;

/** What supervisors ask: whether the service is up and who signs, and whether it wants requests. By path. */
export function probes({ node, phase, shared, endpoints, needsState }: Asked) {
  const health = { status: 200, body: JSON.stringify({ status: 'ok', node }) };
  const isLost = shared !== undefined && endpoints.every(needsState);
  const ready = (): HttpResponse => {
    if (phase() !== 'serving') return { status: 503, body: JSON.stringify({ status: phase() }) };
    if (shared === undefined || shared.available()) return { status: 200, body: JSON.stringify({ status: 'ready' }) };
    const away = [shared.engine];
    return { status: isLost ? 503 : 200, body: JSON.stringify({ status: isLost ? 'away' : 'ready', away }) };
  };
  return { '/health': (): HttpResponse => health, '/ready': ready };
}
