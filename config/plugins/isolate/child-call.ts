import fs from 'node:fs';
import { isRecord } from '../../../lib/json/value.ts';
import { deepFreeze } from '../../../lib/objects/deep-freeze.ts';
import { memoText } from '../../../plugins-sdk/hooks/memo.ts';
import { plainText } from '../../../plugins-sdk/results/plain.ts';
import { LONGEST, type Order, REPORTS } from './protocol.ts';

export type Called = Order & { readonly do: 'call' };

// Taken before the plugin is loaded, which may replace what everybody uses.
const { assign, create, defineProperty, freeze, keys: keysOf } = Object;
const { get } = Reflect;
const { parse } = JSON;
const { writeSync } = fs;
const bytesOf = Buffer.from.bind(Buffer);
const exit = process.exit.bind(process);
const Controller = AbortController;

/** Members of results that mean something. Of all others the service reads the name. */
const MEANT = ['reject', 'status', 'message', 'parameters', 'data'];
/** Characters of a result, beside a memo. */
const LONGEST_RESULT = LONGEST - 8192;

/** At once, so that the service has it even if the process is killed at the next instruction. @param members as JSON */
export function report(i: number, members: string): void {
  try {
    const bytes = bytesOf(`{"i":${i},${members}}\n`);
    for (let at = 0; at < bytes.length; ) at += writeSync(REPORTS, bytes, at);
  } catch {
    exit(1);
  }
}

/** A call, and what its hook gets when it asks for it. */
export class Call {
  isOver = false;
  readonly #i: number;
  readonly #answer: object | undefined;
  readonly #given: object;
  #memo: object | undefined;
  #controller: AbortController | undefined;

  constructor({ i, memo = '{}', answer }: Called) {
    this.#i = i;
    this.#answer = answer === undefined ? undefined : parse(answer);
    this.#given = parse(memo);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined && !this.isOver) report(this.#i, '"watches":true');
    this.#controller ??= new Controller();
    return this.#controller.signal;
  }

  get memo(): object {
    this.#memo ??= this.#given;
    return this.#memo;
  }

  get answer(): object | undefined {
    return deepFreeze(this.#answer);
  }

  /** What it left in its memo, as a member of its report. @throws WrongShape */
  get kept(): string {
    return this.#memo === undefined ? '' : `,"memo":${memoText(this.#memo)}`;
  }

  abort(): void {
    this.#controller?.abort();
  }
}

/** As in the process of the service: what is made when it is asked for is no member of its own. */
class Context {
  readonly #call: Call;

  constructor(call: Call) {
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get memo(): object {
    return this.#call.memo;
  }

  get answer(): object | undefined {
    return this.#call.answer;
  }
}

export function contextOf({ hook, context: { response, error, ...rest } }: Called, call: Call): object {
  const context: Record<string, unknown> = assign(new Context(call), deepFreeze(rest));
  if (response !== undefined)
    context.response = 'text' in Object(response) ? responseOf(Object(response)) : freeze(response);
  if (hook === 'onError') assign(context, { api: rest.api, endpoint: rest.endpoint, error: new Error(String(error)) });
  if (hook === 'onError' || 'keys' in rest)
    defineProperty(context, 'signal', { get: () => call.signal, enumerable: true });
  return freeze(context);
}

/** A copy that is made when the hook looks at it. */
function responseOf({ status, text }: { readonly status: number; readonly text: string }): object {
  let copy: { readonly data: unknown } | undefined;
  return freeze({
    get data() {
      copy ??= { data: parse(text) };
      return copy.data;
    },
    status,
  });
}

/** What the service reads of a result, each member once; it refuses `null`. */
export function meantOf(result: unknown): unknown {
  if (result === undefined || !isRecord(result)) return result && null;
  const members: Record<string, unknown> = create(null);
  const names = keysOf(result);
  for (let i = 0; i < names.length; i += 1) members[names[i] ?? ''] = null;
  for (let i = 0; i < MEANT.length; i += 1) {
    const name = MEANT[i] ?? '';
    if (name in result) members[name] = get(result, name);
  }
  return members;
}

/** @throws WrongShape for what JSON would change */
export function done(value: unknown): string {
  return value === undefined ? '"done":true' : `"done":true,"ok":${plainText(value, LONGEST_RESULT)}`;
}
