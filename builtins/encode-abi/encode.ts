import { type ApiResponse, type Encoded, type Json, Refusal, toHex } from '../../plugins-sdk/index.ts';
import { BudgetError, fullBudget, type Match, PathError } from '../shared/json-path/index.ts';
import type { PathValues } from '../shared/json-path/placeholders.ts';
import type { Combine } from './combine.ts';
import { exactDigits } from './exact-number.ts';
import type { Field } from './fault.ts';
import type { Plan, PlannedValue } from './plan.ts';
import { encodeValues, type Item, ValueError } from './values.ts';

/** How values become an encoding. */
export interface Encoding {
  readonly plan: Plan;
  /** What the requester has chosen of it. */
  readonly delegated: readonly Field[];
  /** How one value is made of all that the paths find. */
  readonly combine: Combine | undefined;
  /** Of the parameters that its paths hold. */
  readonly values: PathValues | undefined;
  /** Hears that nothing is left of a number that is not zero. */
  onCutToZero(): void;
}

/** @throws Refusal */
export function encode(encoding: Encoding, { data, text }: ApiResponse): Encoded {
  if (text === '') throw new Refusal(502, 'API returned no data to encode', { failureClass: 'encode' });
  const { combine, onCutToZero } = encoding;
  try {
    const found = find(encoding, data);
    const matches = found.map(({ match }) => match);
    const tokens = text === undefined ? [] : exactDigits(matches, text);
    // Spread, the plan would cost more than its encoding.
    const items = found.map(({ match, planned: { type, times, exact } }, i): Item => {
      return { type, times, exact, value: match.value, token: tokens[i], onCutToZero };
    });
    const value = toHex(encodeValues(items, combine));
    return { bytes: value, field: 'data', value };
  } catch (cause) {
    throw refusalOf(cause, encoding);
  }
}

interface Found {
  readonly match: Match;
  readonly planned: PlannedValue;
}

/** @throws Refusal where a path finds nothing, PathError */
function find({ plan, delegated, values, combine }: Encoding, data: Json): readonly Found[] {
  const budget = fullBudget();
  return plan.flatMap((planned) => {
    const { path } = planned;
    const matches = combine === undefined ? path.first(data, budget, values) : path.all(data, budget, values);
    const found = [matches ?? []].flat().map((match) => ({ match, planned }));
    if (found.length > 0) return found;
    const isClients = delegated.includes('path');
    // What a client has sent stays out of the log.
    const reason = isClients ? 'the path that the client has chosen finds nothing' : undefined;
    throw new Refusal(502, `No value found at path: ${path.text}`, blame(reason, isClients));
  });
}

function refusalOf(cause: unknown, { delegated }: Encoding): unknown {
  const isPathChosen = delegated.includes('path');
  if (cause instanceof BudgetError && isPathChosen) {
    return new Refusal(400, 'Invalid `_path` request parameter', { reason: cause.message });
  }
  if (cause instanceof PathError) return new Refusal(502, 'API call failed', blame(cause.message, isPathChosen));
  if (!(cause instanceof ValueError)) return cause;
  const isClients = isPathChosen || delegated.includes('type') || (delegated.includes('times') && cause.isOfFactor);
  return new Refusal(502, 'API call failed', blame(cause.message, isClients));
}

/** Operators have nothing to mend where a client has chosen what is wrong. */
function blame(reason: string | undefined, isClients: boolean) {
  return { reason, failureClass: isClients ? 'requester' : 'encode', fault: !isClients };
}
