/** The signal that plugins get aborts with its reason, and costs nothing before. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createAbortController } from '../../kernel/abort.ts';

// An error that got through would end the process that runs these tests.
describe('a signal that plugins get', () => {
  it('tells all listeners, whatever one of them does', async () => {
    const controller = createAbortController();
    const { signal } = controller;
    const told: string[] = [];
    const tell = (name: string) => () => void told.push(name);
    signal.addEventListener('abort', () => {
      throw new Error('sloppy');
    });
    signal.addEventListener('abort', async () => {
      throw new Error('sloppy and late');
    });
    signal.addEventListener('abort', tell('function'));
    signal.addEventListener('abort', { handleEvent: tell('object') });
    signal.onabort = () => {
      told.push('property');
      throw new Error('sloppy');
    };
    controller.abort(new Error('left'));
    await setImmediate();
    assert.deepEqual(told, ['function', 'object', 'property']);
    assert.equal(signal.reason.message, 'left');
  });

  it('tells one once that was added twice or asked for once, and none that was removed', () => {
    const controller = createAbortController();
    const { signal } = controller;
    const told: string[] = [];
    const [twice, once, removed] = ['twice', 'once', 'removed'].map((name) => () => void told.push(name));
    assert.ok(twice && once && removed);
    signal.addEventListener('abort', twice);
    signal.addEventListener('abort', twice);
    signal.addEventListener('abort', once, { once: true });
    signal.addEventListener('abort', removed);
    signal.removeEventListener('abort', removed);
    controller.abort();
    signal.dispatchEvent(new Event('abort'));
    assert.deepEqual(told, ['twice', 'once', 'twice']);
  });

  it('is what the platform takes for one', async () => {
    const controller = createAbortController();
    const all = AbortSignal.any([controller.signal]);
    const fetching = fetch('http://127.0.0.1:9', { signal: controller.signal });
    controller.abort();
    assert.equal(all.aborted, true);
    await assert.rejects(fetching, { name: 'AbortError' });
  });
});
