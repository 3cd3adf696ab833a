import { thenable } from '../plugin-files.ts';
import { type Act, block, ignore, never, pause, type Situation, turns } from './situation.ts';
import { hostileValues, oddErrors, refusalsOf, wrongShapes } from './values.ts';

/** What a function of any stage may do. */
export const plainActs: Readonly<Record<string, Act>> = {
  'says nothing': () => undefined,
  answers: ({ sound }) => sound(),
  'answers some turns later': async ({ sound, draw }) => {
    await turns(draw.below(4));
    return sound();
  },
  throws: () => {
    throw new Error('thrown');
  },
  'throws what is no error': (situation) => {
    throw situation.draw.one(oddErrors)(situation);
  },
  rejects: async ({ draw }) => {
    await turns(draw.below(3));
    throw new Error('rejected');
  },
  refuses: (situation) => {
    throw situation.draw.one(refusalsOf)(situation);
  },
  'refuses some turns later': async (situation) => {
    await turns(situation.draw.below(3));
    throw situation.draw.one(refusalsOf)(situation);
  },
  'returns the wrong shape': (situation) => situation.draw.one(wrongShapes)(situation),
  'returns the wrong shape some turns later': async (situation) => {
    await turns(situation.draw.below(3));
    return situation.draw.one(wrongShapes)(situation);
  },
  'returns what is hostile': (situation) => situation.draw.one(hostileValues)(situation),
  'loses its client': ({ leave, sound }) => {
    leave();
    return sound();
  },
  'loses its client some turns later': async ({ leave, sound, draw }) => {
    await turns(draw.below(3));
    leave();
    await turns(draw.below(3));
    return sound();
  },
};

/** What costs a plugin its budget. */
export const spendingActs: Readonly<Record<string, Act>> = {
  blocks: ({ sound, draw, budget }) => {
    block(draw.chance(0.8) ? 1 : budget + 1);
    return sound();
  },
  'never answers': never,
  'hands out a promise that never answers': () => thenable(ignore),
  'answers when its budget has ended': async ({ sound, budget }) => {
    await pause(budget * 1.5);
    return sound();
  },
  'fails when its budget has ended': async ({ budget }: Situation) => {
    await pause(budget * 1.5);
    throw new Error('too late');
  },
  'ends with its signal': ({ call }) =>
    new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(new Error('aborted')))),
};
