import fs from 'node:fs';
import type { ApiResponse } from '../../../kernel/values.ts';
import { deepFreeze, isRecord } from '../../../lib/json/value.ts';
import { memoText } from '../../../plugins-sdk/hooks/memo.ts';
import { responseView } from '../../../plugins-sdk/hooks/public-hooks.ts';
import { plainText } from '../../../plugins-sdk/results/plain.ts';
import { LONGEST, type Order, REPORTS } from './protocol.ts';

export type Called = Order & { readonly do: 'call' };

// Captured before the plugin is loaded, since it may replace them.
const { assign, create, freeze, keys } = Object;
const { parse } = JSON;
const { writeSync } = fs;
const bytesOf = Buffer.from.bind(Buffer);
const Controller = AbortController;

/** Members of results that have a meaning. Of any other member the service reads only the name. */
const MEANT = ['reject', 'status', 'message', 'parameters', 'data'];
/** Most characters of a result; the rest of a line is for the memo. */
const LONGEST_RESULT = LONGEST - 8192;

/** Sends a report synchronously, so that it arrives even if the process is killed right afterwards. @param members as JSON */
export function report(i: number, members: string): void {
  const bytes = bytesOf(`{"i":${i},${members}}\n`);
  for (let at = 0; at < bytes.length; ) at += writeSync(REPORTS, bytes, at);
}

/** A call under way. It is itself the context of its hook. As in the service, members made on demand are not own members. */
export class Call {
  readonly #order: Called;
  #memo: object | undefined;
  #answer: object | undefined;
  readonly #controller = new Controller();

  constructor(order: Called) {
    this.#order = order;
    const { response, error, ...rest } = order.context;
    assign(this, deepFreeze(rest));
    if (response !== undefined) assign(this, { response: responseOf(Object(response)) });
    if (order.hook === 'onError')
      assign(this, { api: rest.api, endpoint: rest.endpoint, error: new Error(String(error)) });
    freeze(this);
  }

  static abort(call: Call | undefined): void {
    if (call !== undefined) call.#controller.abort();
  }

  /** Returns the hook's result and its memo as members of a report. @throws WrongShape for a value that JSON would change */
  static outcome(call: Call, result: unknown): string {
    const isWatch = call.#order.hook === 'onError' || call.#order.hook === 'onResponseSent';
    const value = isWatch ? undefined : meantOf(result);
    const ok = value === undefined ? '' : `,"ok":${plainText(value, LONGEST_RESULT)}`;
    return `"done":true${ok}${call.#memo === undefined ? '' : `,"memo":${memoText(call.#memo)}`}`;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get memo(): object {
    this.#memo ??= parse(this.#order.memo ?? '{}') as object;
    return this.#memo;
  }

  get answer(): object | undefined {
    if (this.#order.answer !== undefined) this.#answer ??= deepFreeze(parse(this.#order.answer) as object);
    return this.#answer;
  }
}

function responseOf(response: object): object {
  return 'text' in response ? responseView({ ...(response as ApiResponse), data: null }) : freeze(response);
}

/** Returns what the service reads of a result, each member read once. A value that is no object becomes `null`: it is refused. */
function meantOf(result: unknown): unknown {
  if (!isRecord(result)) return result && null;
  const members: Record<string, unknown> = create(null);
  for (const name of keys(result)) members[name] = null;
  for (const name of MEANT) if (name in result) members[name] = result[name];
  return members;
}
