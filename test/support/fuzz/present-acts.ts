import { type Act, ignore, never, pause, type RunFn, type Situation, turns } from './situation.ts';
import { oddErrors, refusalsOf } from './values.ts';

type Stream = () => AsyncGenerator<string | Uint8Array, void, undefined>;

const plain = { status: 200, body: '{}' };

function runOf({ args: [run] }: Situation): RunFn {
  return run as RunFn;
}

/** Runs, and lets nobody know. Modes get a promise, whatever they do. */
function dropped(situation: Situation, options?: { readonly detached: boolean }): void {
  try {
    void runOf(situation)(options);
  } catch (error) {
    situation.blame(`run threw ${String(error)}`);
  }
}

const raise = (situation: Situation): never => {
  throw situation.draw.one([...oddErrors, ...refusalsOf])(situation);
};

const stream =
  (make: (situation: Situation) => Stream): Act =>
  (situation) => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: make(situation)() });

/** What a mode may do that costs no time of its own, and leaves nothing behind. */
export const presentActs: Readonly<Record<string, Act>> = {
  runs: async (situation) => ({ status: 200, body: (await runOf(situation)()).json }),
  'answers otherwise when the run fails': (situation) =>
    runOf(situation)().then(
      ({ json }) => ({ status: 200, body: json }),
      () => plain,
    ),
  'runs twice': async (situation) => {
    await runOf(situation)().catch(ignore);
    return { status: 200, body: (await runOf(situation)()).json };
  },
  'never runs': () => plain,
  'runs, and refuses': async (situation) => {
    await runOf(situation)().catch(ignore);
    return raise(situation);
  },
  'waits for a detached run': async (situation) => ({
    status: 200,
    body: (await runOf(situation)({ detached: true })).json,
  }),
};

/** What leaves work behind, costs a mode its budget, or goes on while its body streams. */
export const unquietPresentActs: Readonly<Record<string, Act>> = {
  'drops its run': (situation) => {
    dropped(situation);
    return plain;
  },
  'detaches its run': (situation) => {
    dropped(situation, { detached: true });
    return plain;
  },
  'runs, and never answers': (situation) => {
    dropped(situation);
    return never();
  },
  'detaches its run, and refuses': (situation) => {
    dropped(situation, { detached: true });
    return raise(situation);
  },
  'drops its run, and refuses': async (situation) => {
    dropped(situation);
    await turns(situation.draw.below(3));
    return raise(situation);
  },
  'runs when it has ended': (situation) => {
    void pause(situation.draw.below(2)).then(() => dropped(situation));
    return plain;
  },
  'runs when it has refused': (situation) => {
    void pause(situation.draw.below(2)).then(() => dropped(situation));
    return raise(situation);
  },
  'runs thrice at once': async (situation) => {
    const runs = [1, 2, 3].map(() => runOf(situation)());
    const ends = await Promise.allSettled(runs);
    return { status: 200, body: JSON.stringify(ends.map(({ status }) => status)) };
  },
  'runs before it streams': async (situation) => {
    const { json } = await runOf(situation)();
    return stream(
      () =>
        async function* () {
          yield json;
        },
    )(situation);
  },
  'runs while it streams': stream(
    (situation) =>
      async function* () {
        yield 'a';
        yield (await runOf(situation)()).json;
      },
  ),
  'runs again and again while it streams': stream(
    (situation) =>
      async function* () {
        for (let i = 0; i < 3; i++)
          yield await runOf(situation)().then(
            ({ json }) => json,
            () => 'none',
          );
      },
  ),
  'streams without a run': stream(
    () =>
      async function* () {
        yield 'a';
        yield Buffer.from('b');
      },
  ),
  'drops its run while it streams': stream(
    (situation) =>
      async function* () {
        dropped(situation);
        yield 'a';
      },
  ),
  'fails while it streams': stream(
    (situation) =>
      async function* () {
        yield 'a';
        raise(situation);
      },
  ),
  'loses its client while it streams': stream(
    (situation) =>
      async function* () {
        situation.leave();
        yield 'a';
        yield (await runOf(situation)()).json;
      },
  ),
  'streams what is no text': stream(
    () =>
      async function* () {
        yield 7 as never;
      },
  ),
  'streams without an end': stream(
    () =>
      async function* () {
        for (;;) {
          yield 'a';
          await turns(1);
        }
      },
  ),
};
