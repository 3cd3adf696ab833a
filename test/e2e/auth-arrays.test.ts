/** Any one method of a list lets a client in; else the last one's error is told. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { suite } from '../support/lifetime.ts';
import { served } from '../support/served.ts';
import { faults } from '../support/upstream.ts';
import { NATIVE, RECIPIENT } from '../support/x402.ts';

/** An auth method of an operator's own: its failures must not tell more than the built-in ones'. */
const broken = `export default {
  name: 'broken-auth',
  auth: { broken: { type: 'object', properties: {} } },
  setup: () => ({ hooks: { authenticate: { broken: () => { throw new Error('secret detail'); } } } }),
};
`;

describe('auth arrays', async () => {
  const free = { type: 'free' };
  const one = { type: 'apiKey', keys: ['one'] };
  const two = { type: 'apiKey', keys: ['two'] };
  const x402 = {
    type: 'x402',
    network: 1,
    rpc: 'http://127.0.0.1:9',
    token: NATIVE,
    amount: '1',
    recipient: RECIPIENT,
  };
  const auths = {
    'key x402': [one, x402],
    'x402 key': [x402, one],
    'key key': [one, two],
    'key free': [one, free],
    'free x402': [free, x402],
    'x402 free': [x402, free],
    'only key': [one],
    'broken key': [{ type: 'broken' }, one],
    'key broken': [one, { type: 'broken' }],
    broken: { type: 'broken' },
  };
  const endpoints = Object.fromEntries(
    Object.entries(auths).map(([name, auth]) => [name, { path: `/p?${encodeURIComponent(name)}`, auth }]),
  );
  const { upstream, service, ...api } = await served(suite, endpoints, {
    answers: { '/p': faults.json(1) },
    sources: { broken },
    api: { auth: two },
  });

  const key = (value: string) => ({ 'X-Api-Key': value });
  const proof = (value: string) => ({ 'X-Payment-Proof': value });
  const answered = (endpoint: string, headers?: Record<string, string>) => api.raw(endpoint, {}, headers);
  const refused = async (endpoint: string, status: number, error: string, headers?: Record<string, string>) => {
    const before = upstream.requests.length;
    await api.refused(status, error, endpoint, {}, headers);
    assert.equal(upstream.requests.length, before);
  };
  const challenged = async (endpoint: string, headers?: Record<string, string>, error?: string) => {
    const response = await api.post(endpoint, {}, headers);
    assert.equal(response.status, 402);
    const { error: told, ...body } = (await response.json()) as { readonly error?: string };
    assert.equal(told, error);
    const terms = ['amount', 'endpointId', 'expiresAt', 'network', 'node', 'recipient', 'token'];
    assert.deepEqual(Object.keys(body).sort(), terms);
  };

  it('[apiKey, x402]: the key opens; all else ends with x402', async () => {
    await answered('key x402', key('one'));
    await answered('key x402', { ...key('one'), ...proof('rubbish') });
    await challenged('key x402');
    await challenged('key x402', key('wrong'));
    await challenged('key x402', { ...key('wrong'), ...proof('rubbish') }, 'Invalid payment proof');
  });

  it('[x402, apiKey]: the key opens although x402 comes first; all else ends with the key', async () => {
    await answered('x402 key', key('one'));
    await answered('x402 key', { ...key('one'), ...proof('rubbish') });
    await refused('x402 key', 401, 'Missing X-Api-Key header');
    await refused('x402 key', 401, 'Missing X-Api-Key header', proof('rubbish'));
    await refused('x402 key', 401, 'Invalid API key', key('wrong'));
  });

  it('[apiKey, apiKey]: either opens', async () => {
    await answered('key key', key('one'));
    await answered('key key', key('two'));
    await refused('key key', 401, 'Invalid API key', key('three'));
  });

  it('an array with free in it is open, wherever it stands', async () => {
    for (const endpoint of ['key free', 'free x402', 'x402 free']) {
      await answered(endpoint);
      await answered(endpoint, { ...key('wrong'), ...proof('rubbish') });
    }
  });

  it('an array of one is that one; the array replaces the auth of the API', async () => {
    await answered('only key', key('one'));
    await refused('only key', 401, 'Invalid API key', key('two'));
  });

  it('a method that fails unforeseen lets nobody in, and says nothing', async () => {
    await refused('broken', 500, 'Internal server error');
    await refused('key broken', 500, 'Internal server error', key('wrong'));
    await answered('key broken', key('one'));
    await answered('broken key', key('one'));
    await refused('broken key', 401, 'Invalid API key', key('wrong'));
  });

  it('a fault that a later method hides from the client is logged', async () => {
    const before = service.logs.length;
    await answered('broken key', key('one'));
    const told = service.logs.slice(before).filter(({ level }) => level === 'warn');
    const facts = told.map(({ message, fields }) => [message, fields?.stage, String(fields?.detail).split('\n')[0]]);
    const detail = 'plugin "broken-auth": Error: secret detail';
    assert.deepEqual(facts.at(-1), ['Internal server error', 'authenticate', detail]);
  });
});
