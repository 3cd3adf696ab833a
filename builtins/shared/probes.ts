import type { HttpResponse, Services } from '../../plugins-sdk/index.ts';

type Asked = Pick<Services, 'node' | 'phase' | 'endpoints' | 'dependencies'>;

/** Returns the answers to probes by path: `/health` with the signer, and `/ready` for whether the service accepts requests. */
export function probes({ node, phase, endpoints, dependencies }: Asked) {
  const health = { status: 200, body: JSON.stringify({ status: 'ok', node }) };
  const ready = (): HttpResponse => {
    if (phase() !== 'serving') return { status: 503, body: JSON.stringify({ status: phase() }) };
    const missing = dependencies().filter((dependency) => !dependency.isAvailable());
    if (missing.length === 0) return { status: 200, body: JSON.stringify({ status: 'ready' }) };
    const away = missing.map(({ name }) => name);
    const isLost = endpoints.every((endpoint) => missing.some((dependency) => dependency.isNeeded(endpoint)));
    return { status: isLost ? 503 : 200, body: JSON.stringify({ status: isLost ? 'away' : 'ready', away }) };
  };
  return { '/health': (): HttpResponse => health, '/ready': ready };
}
