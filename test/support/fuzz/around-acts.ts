import type { Flight } from '../../../plugins-sdk/stage-functions.ts';
import { type Act, ignore, never, pause, type Situation } from './situation.ts';
import { hostileValues, oddErrors, wrongShapes } from './values.ts';

type AnyFlight = Flight<unknown, unknown>;

/** The same value in another form, as the next function may get it. */
function another({ args: [value] }: Situation): unknown {
  const { with: change, ...request } = value as { with?(parameters: object): unknown };
  return change === undefined ? { ...request, url: 'https://other.example/' } : change.call(value, { a: 2 });
}

/** A call after the end of the function, or beside it, whose promise nobody waits for: neither may harm the service. */
function dropped(situation: Situation, call: () => unknown): void {
  try {
    call();
  } catch (error) {
    situation.blame(`a function that returns promises threw ${String(error)}`);
  }
}

const raise = (situation: Situation): never => {
  throw situation.draw.one(oddErrors)(situation);
};

const share =
  (work: (flight: AnyFlight, situation: Situation) => unknown): Act =>
  (situation) =>
    situation.call.share(situation.key, (flight) => work(flight, situation));

/** What a function of an onion may do with the rest of it, one thing after the other. */
export const aroundActs: Readonly<Record<string, Act>> = {
  'asks the next': ({ call }) => call.next(),
  'asks the next twice': async ({ call }) => {
    await call.next().catch(ignore);
    return call.next();
  },
  'asks the next something else': (situation) => situation.call.next(another(situation)),
  'asks the next the wrong thing': (situation) => situation.call.next(situation.draw.one(wrongShapes)(situation)),
  'asks the next what is hostile': (situation) => situation.call.next(situation.draw.one(hostileValues)(situation)),
  'answers when the next one fails': ({ call, sound }) => call.next().catch(sound),
  'says nothing after it has asked': async ({ call }) => void (await call.next()),
  'answers otherwise after it has asked': async (situation) => {
    await situation.call.next();
    return situation.draw.one(wrongShapes)(situation);
  },
  shares: share(({ next }) => next()),
  'asks twice in what it shares': share(async ({ next }) => {
    await next().catch(ignore);
    return next();
  }),
  'shares something else': share(({ next }, situation) => next(another(situation))),
  'shares a failure': share((_, situation) => raise(situation)),
  'shares a rejection': share(async (_, situation) => raise(situation)),
  'shares the wrong shape': share((_, situation) => situation.draw.one(wrongShapes)(situation)),
  'shares what is hostile': share((_, situation) => situation.draw.one(hostileValues)(situation)),
  'shares nothing': share(ignore),
};

/** What leaves work behind, or costs a plugin its budget. */
export const unquietAroundActs: Readonly<Record<string, Act>> = {
  'asks the next twice at once': ({ call }) => Promise.any([call.next(), call.next()]),
  'drops what it asked': (situation) => {
    dropped(situation, () => situation.call.next());
    return situation.sound();
  },
  'asks when it has ended': (situation) => {
    void pause(situation.draw.below(2)).then(() => dropped(situation, () => situation.call.next()));
    return situation.sound();
  },
  'asks, and never answers': (situation) => {
    dropped(situation, () => situation.call.next());
    return never();
  },
  'shares what never ends': share(never),
  'shares what ends with its signal': share(
    ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  ),
  'shares within what it shares': share((_, situation) => situation.call.share(situation.key, ({ next }) => next())),
  'asks outside of what it shares': share((_, situation) => situation.call.next()),
  'drops what it shared': (situation) => {
    dropped(situation, () => situation.call.share(situation.key, ({ next }) => next()));
    return situation.sound();
  },
  'shares when it has ended': (situation) => {
    const late = () => situation.call.share(situation.key, ({ next }) => next());
    void pause(situation.draw.below(2)).then(() => dropped(situation, late));
    return situation.sound();
  },
  'shares under what is no key': (situation) =>
    situation.call.share(situation.draw.one(hostileValues)(situation) as string, ({ next }) => next()),
  'shares what is no function': (situation) => situation.call.share(situation.key, 1 as never),
  'loses its client while it asks': (situation) => {
    const asked = situation.call.next();
    situation.leave();
    return asked;
  },
  'loses its client while it shares': (situation) => {
    const shared = situation.call.share(situation.key, ({ next }) => next());
    situation.leave();
    return shared;
  },
  'drops what it asked in what it shares': share((flight, situation) => {
    dropped(situation, () => flight.next());
    return situation.sound();
  }),
  'asks when what it shares has ended': share((flight, situation) => {
    void pause(1).then(() => dropped(situation, () => flight.next()));
    return situation.sound();
  }),
};
