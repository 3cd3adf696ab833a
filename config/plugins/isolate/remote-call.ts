import { clipped } from '../../../lib/text/clipped.ts';
import { answerTextOf, memoTextOf, replaceMemo } from '../../../plugins-sdk/hooks/context.ts';
import { responseTextOf } from '../../../plugins-sdk/hooks/public-hooks.ts';
import { isRecord } from '../../../plugins-sdk/schema/path.ts';
import { PluginProblem } from '../plugin-problem.ts';
import type { Bundle } from './bundle.ts';
import { unpackMemo, unpackResult } from './odd-values.ts';
import type { CallReport, Thrown } from './protocol.ts';

/** One call of a hook, which may begin in one process only. */
export class RemoteCall {
  readonly context: Readonly<Record<string, unknown>>;
  /** The rest of the frame, behind the id. */
  readonly json: string;
  readonly text: string | undefined;
  readonly deadline: number;
  readonly promise: Promise<unknown>;
  #resolve: (value: unknown) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  readonly #over: () => void;
  #isOver = false;
  #isWatched = false;
  /** Has the process in which it is give it up. */
  forget: () => void = () => undefined;

  constructor(hook: string, context: Readonly<Record<string, unknown>>, deadline: number, over: () => void) {
    const { members, text } = membersOf(context);
    this.context = context;
    const memo = memoTextOf(context);
    const kept = memo === undefined ? '' : `,"m":${memo}`;
    this.json = `"h":${JSON.stringify(hook)},"c":${JSON.stringify(members)}${kept}}`;
    this.text = text;
    this.deadline = deadline;
    this.#over = over;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** About as long as its frame. */
  get length(): number {
    return this.json.length + (this.text?.length ?? 0);
  }

  frame(id: number): string {
    return `{"k":"call","i":${id},${this.json}`;
  }

  /** @param tell tells its process of its abort. @throws Error when the process wants to hear of it again */
  watch(tell: () => void): void {
    if (this.#isWatched) throw new Error('it asked twice for the signal of a call');
    this.#isWatched = true;
    const { signal } = this.context;
    if (!(signal instanceof AbortSignal)) return;
    if (signal.aborted) tell();
    else signal.addEventListener('abort', tell, { once: true });
  }

  /** @throws Error for what the process's own code never sends */
  settle(report: Exclude<CallReport, { readonly k: 'watch' | 'skipped' }>, locate: Bundle['locate']): void {
    if (report.k === 'threw') {
      this.fail(report.text === undefined ? undefined : new RemoteError(report.text, locate));
      return;
    }
    const result = unpackResult(report);
    if (report.m !== undefined) replaceMemo(this.context, unpackMemo(report.m));
    this.#end();
    this.#resolve(result);
  }

  fail(error: unknown): void {
    this.#end();
    this.#reject(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#over();
  }
}

interface Sent {
  readonly members: Readonly<Record<string, unknown>>;
  readonly text: string | undefined;
}

/** What of a context is sent: the signal is made when somebody asks for it, and answers stay the texts that they are. */
function membersOf(context: Readonly<Record<string, unknown>>): Sent {
  const members: Record<string, unknown> = {};
  let text = answerTextOf(context);
  for (const name of Object.keys(context)) {
    if (name === 'signal') continue;
    const member = context[name];
    if (name === 'response' && isRecord(member)) {
      text = responseTextOf(member);
      members.response = text === undefined ? member : { status: member.status };
    } else members[name] = member instanceof Error ? member.message : member;
  }
  return { members, text };
}

/** Characters of what was thrown that the log gets at most. */
const LONGEST_TEXT = 16_384;

/** What a hook threw in the other process, with the text that the log gets. */
export class RemoteError extends Error {
  constructor(text: string, locate = (clip: string) => clip) {
    super();
    this.stack = clipped(locate(clipped(text, LONGEST_TEXT)), LONGEST_TEXT);
  }
}

/** What a plugin threw in the other process before it was ready. */
export function rebuiltError({ problem, message, stack, issues }: Thrown, locate: Bundle['locate']): Error {
  if (problem !== undefined) return new PluginProblem(problem);
  const error = new Error(clipped(String(message), LONGEST_TEXT));
  error.stack = locate(clipped(String(stack), LONGEST_TEXT));
  return issues === undefined ? error : Object.assign(error, { issues });
}
