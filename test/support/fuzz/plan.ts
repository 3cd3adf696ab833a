import { type StageName, stageNames, stages } from '../../../kernel/stages.ts';
import type { Endpoint } from '../../../kernel/values.ts';
import { plainActs, spendingActs } from './acts.ts';
import { aroundActs, unquietAroundActs } from './around-acts.ts';
import { presentActs, unquietPresentActs } from './present-acts.ts';
import { type Act, Draw } from './situation.ts';
import { endpointIds } from './sound.ts';

/** Plugins of a service that misbehave. */
export const PLUGINS = 2;

/** When the client of a request leaves, if it does. */
export type Leaving =
  | { readonly after: 'turns' | 'milliseconds'; readonly count: number }
  | { readonly at: StageName }
  | undefined;

/** What happens in one request. */
export interface Plan {
  readonly name: string;
  readonly endpoint: Endpoint;
  /** By plugin and stage. */
  readonly acts: ReadonlyMap<string, string>;
  readonly leaving: Leaving;
  /** Turns of the event loop that a built-in takes. */
  readonly slowness: number;
  /** Chunks that are read of a body that streams. */
  readonly chunks: number;
  readonly key: string;
  draw(plugin: number, stage: StageName): Draw;
}

type Acts = Readonly<Record<string, Act>>;

function actsAt(stage: StageName, isCalm: boolean): Acts {
  const plain = isCalm ? plainActs : { ...plainActs, ...spendingActs };
  if (stages[stage].kind === 'around') return { ...plain, ...aroundActs, ...(isCalm ? {} : unquietAroundActs) };
  if (stage === 'present') return { ...plain, ...presentActs, ...(isCalm ? {} : unquietPresentActs) };
  return plain;
}

const acts = [true, false].map((isCalm) => new Map(stageNames.map((stage) => [stage, actsAt(stage, isCalm)])));

/** Acts of a stage. @param isCalm whether only those count that cost no time, and leave nothing behind. */
export const actsOf = (stage: StageName, isCalm: boolean): Acts => acts[isCalm ? 0 : 1]?.get(stage) ?? {};

const pairsOf = (isCalm: boolean) =>
  stageNames.flatMap((stage) => Object.keys(actsOf(stage, isCalm)).map((act) => [stage, act] as const));

/** Every act at every stage. */
export const pairs = { calm: pairsOf(true), wild: pairsOf(false) };

/** Chance of each function to misbehave beside the one that is to. */
const OTHERS = 0.04;

function drawActs(index: number, isCalm: boolean, draw: Draw): Map<string, string> {
  const list = isCalm ? pairs.calm : pairs.wild;
  const [stage, act] = list[index % list.length] ?? draw.one(list);
  const acts = new Map<string, string>();
  for (let plugin = 0; plugin < PLUGINS; plugin++)
    for (const other of stageNames)
      if (draw.chance(OTHERS)) acts.set(`${plugin} ${other}`, draw.one(Object.keys(actsOf(other, isCalm))));
  return acts.set(`${draw.below(PLUGINS)} ${stage}`, act);
}

/** Of a misbehaving plugin where one is to present. */
function drawMode(acts: ReadonlyMap<string, string>, draw: Draw): string {
  const presenting = [...Array(PLUGINS).keys()].filter((plugin) => acts.has(`${plugin} present`));
  if (presenting.length > 0) return `once${draw.one(presenting)}`;
  return draw.chance(0.7) ? 'sync' : `once${draw.below(PLUGINS)}`;
}

function drawLeaving(draw: Draw): Leaving {
  if (draw.chance(0.75)) return undefined;
  if (draw.chance(0.5)) return { at: draw.one(stageNames) };
  const after = draw.one(['turns', 'milliseconds'] as const);
  return { after, count: draw.below(after === 'turns' ? 12 : 10) };
}

/** @param index of the request, among all of the seed. */
export function planOf(seed: number, index: number, isCalm: boolean): Plan {
  const start = (seed ^ Math.imul(index + 1, 0x9e3779b1)) | 0;
  const draw = new Draw(start);
  const acts = drawActs(index, isCalm, draw);
  const auth = draw.chance(0.5) ? [{ type: 'free' }] : [{ type: 'odd0' }, { type: 'odd1' }, { type: 'free' }];
  const endpoint = { id: draw.one(endpointIds), api: 'a', name: 'e', mode: drawMode(acts, draw), auth };
  const draws = new Map<string, Draw>();
  const drawFor = (plugin: number, stage: StageName) => {
    const name = `${plugin} ${stage}`;
    const own = draws.get(name) ?? new Draw(start + 31 * stageNames.indexOf(stage) + plugin);
    draws.set(name, own);
    return own;
  };
  return {
    name: `request ${index}: ${[...acts].map(([who, act]) => `${who} ${act}`).join(', ')}`,
    endpoint: { ...endpoint, block: {}, apiBlock: {} },
    acts,
    leaving: isCalm ? undefined : drawLeaving(draw),
    slowness: draw.chance(0.7) ? 1 : draw.below(20),
    chunks: draw.below(6),
    key: draw.one(['k', 'l']),
    draw: drawFor,
  };
}
