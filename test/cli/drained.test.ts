/** A stop waits for background work as long as documented, and tells what is left. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { Debts } from '../../plugins-sdk/state/debts.ts';
import { drained } from '../../service/drain.ts';

/** A drain with its own clock; what it comes to once the milliseconds have passed in steps. */
function setUp(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const turns = async () => {
    for (let turn = 0; turn < 10; turn++) await new Promise((done) => setImmediate(done));
  };
  const pass = async (milliseconds: number) => {
    for (const end = now + milliseconds; now < end; ) {
      now += 100;
      t.mock.timers.tick(100);
      await turns();
    }
  };
  const debts = new Debts();
  const lines: unknown[] = [];
  const told = () => {
    debts.tell({ error: (message, fields) => void lines.push([message, fields]) });
    return lines;
  };
  const begin = async (work: Promise<unknown>, delay = 0) => {
    let outcome: boolean | undefined;
    void drained(work, debts, delay).then((isDone) => (outcome = isDone));
    await turns();
    return { outcome: () => outcome };
  };
  return { debts, told, pass, begin };
}

const forever = new Promise<never>(() => undefined);
const line = { message: 'a payer has paid for nothing', fields: { requestId: '0x01' } };

it('work that never ends is waited for 25 s, and the delay before', async (t) => {
  const { pass, begin } = setUp(t);
  const { outcome } = await begin(forever, 5000);
  await pass(29_900);
  assert.equal(outcome(), undefined);
  await pass(100);
  assert.equal(outcome(), false);
});

it('while a client is owed something, it is waited for 45 s, and what is left then is told', async (t) => {
  const { debts, told, pass, begin } = setUp(t);
  debts.owe(line);
  debts.owe();
  debts.owe({ ...line, fields: { requestId: '0x02' } });
  const { outcome } = await begin(Promise.resolve());
  await pass(44_900);
  assert.equal(outcome(), undefined);
  await pass(200);
  assert.equal(outcome(), true);
  assert.deepEqual(told(), [
    [line.message, { requestId: '0x01' }],
    [line.message, { requestId: '0x02' }],
  ]);
});

it('work that never ends is not waited for any longer once nobody is owed anything', async (t) => {
  const { debts, told, pass, begin } = setUp(t);
  const paid = debts.owe(line);
  const { outcome } = await begin(forever);
  await pass(30_000);
  paid();
  paid();
  await pass(1000);
  assert.equal(outcome(), undefined);
  await pass(200);
  assert.equal(outcome(), false);
  assert.deepEqual(told(), []);
});

it('an answer that goes out in the extension is waited for; so is a debt that begins as another ends', async (t) => {
  const { debts, pass, begin } = setUp(t);
  let answer = () => {};
  const settled = debts.owe(line);
  const { outcome } = await begin(new Promise<void>((resolve) => (answer = resolve)));
  await pass(30_000);
  settled();
  const marked = debts.owe();
  await pass(5000);
  assert.equal(outcome(), undefined);
  marked();
  answer();
  await pass(100);
  assert.equal(outcome(), true);
});

it('what is owed ends the wait at once', async (t) => {
  const { debts, pass, begin } = setUp(t);
  const paid = debts.owe(line);
  const { outcome } = await begin(Promise.resolve());
  await pass(10_000);
  assert.equal(outcome(), undefined);
  paid();
  await pass(100);
  assert.equal(outcome(), true);
});
