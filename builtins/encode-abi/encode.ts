import { type ApiResponse, type Encoded, type Json, Refusal, toHex } from '../../plugins-sdk/index.ts';
import { BudgetError, fullBudget, type Match, PathError } from '../shared/json-path/index.ts';
import type { PathValues } from '../shared/json-path/placeholders.ts';
import { exactDigits } from './exact-number.ts';
import type { Field } from './fault.ts';
import type { Plan } from './plan.ts';
import { encodeValues, type Item, ValueError } from './values.ts';

/** How values become an encoding. */
export interface Encoding {
  readonly plan: Plan;
  /** What the requester has chosen of it. */
  readonly delegated: readonly Field[];
  /** Of the parameters that its paths hold. */
  readonly values: PathValues | undefined;
  /** Hears that nothing is left of a number that is not zero. */
  onCutToZero(): void;
}

/** @throws Refusal */
export function encode(encoding: Encoding, { data, text }: ApiResponse): Encoded {
  if (text === '') throw new Refusal(502, 'API returned no data to encode', { failureClass: 'encode' });
  const { plan, onCutToZero } = encoding;
  try {
    const matches = find(encoding, data);
    const tokens = text === undefined ? [] : exactDigits(matches, text);
    // Spread, the plan would cost more than its encoding.
    const items = plan.map(({ type, times, exact }, i): Item => {
      return { type, times, exact, value: matches[i]?.value, token: tokens[i], onCutToZero };
    });
    const value = toHex(encodeValues(items));
    return { bytes: value, field: 'data', value };
  } catch (cause) {
    throw refusalOf(cause, encoding);
  }
}

/** @throws Refusal where a path finds nothing, PathError */
function find({ plan, delegated, values }: Encoding, data: Json): readonly Match[] {
  const budget = fullBudget();
  return plan.map(({ path }) => {
    const found = path.first(data, budget, values);
    if (found !== undefined) return found;
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
