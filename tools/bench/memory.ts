import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { config, ENCODED, largeConfig, measuredConfig } from './configs.ts';
import { load } from './load.ts';
import type { Bench, Service } from './rounds.ts';
import { median } from './statistics.ts';
import { table } from './table.ts';

/** What takes memory, and how much: differences of resident memory of new processes. */

const IDLE_MS = 3000;
const UNDER_WAY = 1000;
const ENDPOINTS = 1000;
const TRIES = 3;
/** Milliseconds until a service has answered, or asked its upstream. */
const REST_MS = 1500;
const body = '{"parameters":{"symbol":"ETHUSD"}}';

const many = { connections: { max: 2 * IDLE_MS, perAddress: 2 * IDLE_MS } };
const patient = { maxConcurrentApiCalls: 2 * UNDER_WAY };

/** Clients that each ask once and keep their connection. */
async function clients(url: string, count: number): Promise<Socket[]> {
  const { hostname, port, pathname } = new URL(url);
  const headers = 'Host: bench\r\nX-API-Key: benchmark-key-of-16\r\nContent-Type: application/json\r\n';
  const request = `POST ${pathname} HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const socket = connect(Number(port), hostname).on('error', () => undefined);
    await once(socket, 'connect');
    socket.resume().write(request);
    sockets.push(socket);
  }
  await sleep(REST_MS);
  return sockets;
}

/** KiB that each of so many clients takes. */
async function perClient(service: Service, url: string, count: number, warmUp: number): Promise<number> {
  await load({ url: service.urls.encoded ?? '', requests: warmUp });
  const before = await service.memory();
  const sockets = await clients(url, count);
  const after = await service.memory();
  for (const socket of sockets) socket.destroy();
  return ((after - before) * 1024) / count;
}

async function typical(one: () => Promise<number>): Promise<string> {
  const found: number[] = [];
  for (let i = 0; i < TRIES; i++) found.push(await one());
  return median(found).toFixed(1);
}

/** Starts a service for a measurement. */
async function within<T>(bench: Bench, text: string, work: (service: Service) => Promise<T>): Promise<T> {
  const service = await bench.startService('memory', text);
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

/** @param warmUp requests before memory is read. */
export async function memoryTable(bench: Bench, upstream: string, warmUp: number): Promise<string> {
  const rest = (text: string) => within(bench, text, (service) => service.memory());
  const endpoints = [ENCODED, { ...ENCODED, name: 'never', path: '/never' }];
  const held = config(upstream, endpoints, patient, many);
  const client = (name: string, count: number) => () =>
    within(bench, held, (service) => perClient(service, service.urls[name] ?? '', count, warmUp));
  const each = async () => {
    const [few, all] = [await rest(largeConfig(upstream, 1)), await rest(largeConfig(upstream, ENDPOINTS))];
    return ((all - few) * 1024) / ENDPOINTS;
  };
  const busy = () =>
    within(bench, measuredConfig(upstream), async (service) => {
      await load({ url: service.urls.encoded ?? '', requests: 4 * warmUp });
      return service.memory();
    });
  return table(
    ['what', 'resident memory'],
    [
      ['a service at rest', `${await typical(() => rest(measuredConfig(upstream)))} MiB`],
      ['the same under full load, small answers', `${await typical(busy)} MiB`],
      ['an idle connection', `${await typical(client('encoded', IDLE_MS))} KiB`],
      ['a request under way, with its connection', `${await typical(client('never', UNDER_WAY))} KiB`],
      ['an endpoint', `${await typical(each)} KiB`],
    ],
  );
}
