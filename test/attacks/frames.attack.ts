/** What a process of a plugin sends, however it is cut or made up, neither ends nor blocks the service. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { PluginHost } from '../../config/plugins/isolate/host.ts';
import { unpackSchema } from '../../config/plugins/isolate/packed-schema.ts';
import { thisProcess } from '../../config/plugins/isolate/process-stats.ts';
import type { Sketch } from '../../config/plugins/isolate/protocol.ts';
import { standIn } from '../../config/plugins/isolate/stand-in.ts';
import { keyKinds } from '../../tools/bench/documents.ts';
import { resultOf, speaker } from '../support/isolated-speaker.ts';
import { randomFrom, seed } from '../support/seed.ts';
import { costOf } from '../support/turns.ts';
import { framesScript, WORST } from './frames-script.ts';

/** Sequences of frames, each sent by a process that may send anything; `SEQUENCES` has a run be shorter. */
const SEQUENCES = Number(process.env.SEQUENCES ?? 10_000);
/** Plugins that run at once, and calls of each. */
const PLUGINS = 4;
const CALLS = 6;
/** Milliseconds. */
const BUDGET = 150;
/** After as many processes that ended, the next are started no faster than one a second. */
const MOST_RESTARTS = 5;
/** Processes that say something else than what they are asked while they get ready. */
const STARTS = 100;

/** What nobody may do to the service: bytes that it grows by, and milliseconds of processor time in one turn. */
const MOST_GROWTH = 300 * 1024 * 1024;
const LONGEST_TURN = 150;

const PONG = `say(${resultOf(`'well'`)})`;

class Speaking {
  readonly isolate: PluginHost;
  restarts = 0;

  constructor({ patience = 20_000, budget = BUDGET, more = '' } = {}) {
    this.isolate = new PluginHost({
      bundle: { code: speaker + more, locate: (text) => text },
      memory: 192,
      config: undefined,
      budget,
      patience,
      line: () => undefined,
      log: () => undefined,
      count: (what) => {
        if (what === 'restarts') this.restarts += 1;
      },
    });
  }

  call(script: string): Promise<unknown> {
    return this.isolate.call('onError', { script });
  }

  /** Whether a call is answered in the end. */
  async isWell(): Promise<boolean> {
    for (const late = AbortSignal.timeout(30_000); !late.aborted; ) {
      if (isDeepStrictEqual(await this.call(PONG).catch(() => undefined), { data: 'well' })) return true;
    }
    return false;
  }
}

/** The worst of what the service has done meanwhile. */
class Watch {
  readonly #before = process.memoryUsage.rss();
  #cpu = thisProcess.cpu();
  growth = 0;
  turn = 0;
  readonly #timer = setInterval(() => {
    const cpu = thisProcess.cpu();
    this.turn = Math.max(this.turn, cpu - this.#cpu);
    this.#cpu = cpu;
    this.growth = Math.max(this.growth, process.memoryUsage.rss() - this.#before);
  }, 2);

  end(what: string): void {
    clearInterval(this.#timer);
    const growth = Math.round(this.growth / 1024 / 1024);
    process.stdout.write(`# ${what}: ${growth} MiB more, longest turn ${this.turn.toFixed(0)} ms\n`);
    assert.ok(this.growth < MOST_GROWTH, `${what}: the service has grown by ${growth} MiB`);
    assert.ok(this.turn < LONGEST_TURN, `${what}: a turn took ${this.turn.toFixed(0)} ms`);
  }
}

for (const [what, script] of Object.entries(WORST)) {
  test(`a process that sends ${what}`, { timeout: 60_000 }, async (t) => {
    const speaking = new Speaking({ budget: 10_000 });
    t.after(() => speaking.isolate.stop());
    await speaking.isolate.start();
    const watch = new Watch();
    await Promise.allSettled([1, 2].map(() => speaking.call(script).then(() => undefined)));
    assert.ok(await speaking.isWell());
    watch.end(what);
  });
}

test(`${SEQUENCES} sequences of frames`, { timeout: 280_000 }, async () => {
  const watch = new Watch();
  let next = 0;
  const plugin = async () => {
    while (next < SEQUENCES) {
      const speaking = new Speaking();
      await speaking.isolate.start();
      const caller = async () => {
        while (next < SEQUENCES && speaking.restarts < MOST_RESTARTS) {
          next += 1;
          await speaking.call(framesScript(randomFrom(seed + next))).catch(() => undefined);
        }
      };
      await Promise.all(Array.from({ length: CALLS }, caller));
      assert.ok(await speaking.isWell(), `sequence ${next}`);
      await speaking.isolate.stop();
    }
  };
  await Promise.all(Array.from({ length: PLUGINS }, plugin));
  watch.end('sequences');
});

test('what a process says of its plugin: members with integer keys far apart', async () => {
  const keys = Array.from({ length: 120_000 }, (_, i) => keyKinds['integers with gaps'](i));
  const members: Readonly<Record<string, Sketch>> = JSON.parse(`{${keys.map((key) => `"${key}":{"is":"list"}`)}}`);
  const o = keys.map((key) => [key, true, { v: 1 }]);
  const { cpu } = await costOf(async () => [standIn({ is: 'object', members }), unpackSchema({ o })]);
  assert.ok(cpu < 1500, `${cpu} ms of CPU`);
});

test(`${STARTS} processes that do not say what they are asked`, { timeout: 120_000 }, async () => {
  const watch = new Watch();
  for (let i = 0; i < STARTS; i += 1) {
    const script = framesScript(randomFrom(seed - i - 1));
    const over = `answers.${i % 2 === 0 ? 'load' : 'make'} = () => new AsyncFunction('id', 'say', 'write', 'frame', ${JSON.stringify(script)})(1, say, write, frame);`;
    const { isolate } = new Speaking({ patience: 300, more: over });
    await isolate.start().catch(() => undefined);
    await isolate.stop();
  }
  watch.end('starts');
});
