/** No turn reads more than it may, and who has little waits for nobody with much. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { Gate, type Reader } from '../../http/gate.ts';

/** Reads requests as node does: in each turn all that are open read what they have, in the order in which they opened. */
class Simulated implements Reader {
  taken = 0;
  isOpen = true;
  readonly address: string;
  left: number;

  constructor(address: string, left: number) {
    this.address = address;
    this.left = left;
  }

  stop(): void {
    this.isOpen = false;
  }

  start(): void {
    this.isOpen = true;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('no turn reads more than it may, everything is read, and who has little waits for nobody with much', async () => {
  const clients = fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 200 })), {
    minLength: 1,
    maxLength: 80,
  });
  await fc.assert(
    fc.asyncProperty(clients, async (specified) => {
      const gate = new Gate(64, () => 0);
      const readers = specified.map(([address, left]) => new Simulated(`greedy ${address}`, left));
      const modest = new Simulated('modest', 1);
      for (const reader of [...readers, modest]) gate.add(reader);
      let waited = 0;
      while ([...readers, modest].some(({ left }) => left > 0)) {
        let count = 0;
        for (const reader of [...readers, modest]) {
          while (reader.isOpen && reader.left > 0 && gate.enter(reader)) {
            reader.left -= 1;
            count += 1;
          }
          // Node hands the rest back, which is read again in its turn.
          if (reader.isOpen && reader.left > 0) {
            gate.delete(reader);
            reader.stop();
            gate.queue(reader);
          }
        }
        assert.ok(count <= 64, `${count} in one turn`);
        if (modest.left > 0) waited += 1;
        await turn();
      }
      assert.ok(waited <= 4, `the one with a single request waited for ${waited} turns`);
      while (gate.size > 0) await turn();
      assert.ok([...readers, modest].every(({ isOpen }) => isOpen));
    }),
    { numRuns: 200 },
  );
});

it('who comes while others wait is behind those of its address', async () => {
  const gate = new Gate(4, () => 0);
  const readers = Array.from({ length: 10 }, () => new Simulated('a', 0));
  for (const reader of readers) gate.add(reader);
  const [first] = readers;
  for (let i = 0; i < 4; i++) assert.equal(gate.enter(first ?? assert.fail()), true);
  const late = new Simulated('a', 0);
  const other = new Simulated('b', 0);
  gate.add(late);
  gate.add(other);
  assert.deepEqual([gate.size, late.isOpen, other.isOpen], [12, false, false]);
  // One of each address in turn.
  await turn();
  await turn();
  assert.deepEqual([readers[0]?.isOpen, other.isOpen, readers[1]?.isOpen, late.isOpen], [true, true, false, false]);
  for (let i = 0; i < 10; i++) await turn();
  assert.deepEqual([gate.size, late.isOpen], [0, true]);
});

it('who reads one request after another while others wait is never refused, but waits in its turn', async () => {
  const gate = new Gate(64, () => 0);
  const readers = Array.from({ length: 400 }, () => new Simulated('a', 0));
  for (const reader of readers) gate.add(reader);
  for (let i = 0; i < 64; i++) assert.equal(gate.enter(readers[i] ?? assert.fail()), true);
  const [one] = readers;
  for (let count = 0; count < 20; count++) {
    while (one?.isOpen === false) await turn();
    assert.equal(gate.enter(one ?? assert.fail()), true);
    await turn();
  }
});

it('tells how long those waited which went on last', async () => {
  let now = 0;
  const gate = new Gate(4, () => now);
  const readers = [1, 2].map(() => new Simulated('a', 0));
  for (const reader of readers) gate.add(reader);
  for (let i = 0; i < 4; i++) gate.enter(readers[0] ?? assert.fail());
  now = 700;
  await turn();
  assert.deepEqual([gate.delay, gate.size], [700, 1]);
  await turn();
  await turn();
  assert.deepEqual([gate.delay, gate.size], [0, 0]);
});
