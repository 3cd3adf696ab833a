import { answerTextOf, memoTextOf } from '../../../plugins-sdk/hooks/context.ts';
import { responseTextOf } from '../../../plugins-sdk/hooks/public-hooks.ts';
import { isRecord } from '../../../plugins-sdk/schema/path.ts';
import { clipped } from './clipped.ts';

/** One call of a hook, which may begin in one process only. */
export class RemoteCall {
  readonly context: Readonly<Record<string, unknown>>;
  /** The rest of the frame, behind the id. */
  readonly json: string;
  readonly text: string | undefined;
  /** By the clock of its plugin. */
  readonly deadline: number;
  readonly promise: Promise<unknown>;
  #resolve: (value: unknown) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  readonly #over: () => void;
  #isOver = false;
  /** Whether its process wants to hear of its abort. */
  isWatched = false;
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

  answer(value: unknown): void {
    this.#end();
    this.#resolve(value);
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
export const LONGEST_TEXT = 16_384;

/** What a hook threw in the other process, with the text that the log gets. */
export class RemoteError extends Error {
  constructor(text: string, locate = (clip: string) => clip) {
    super();
    this.stack = clipped(locate(clipped(text, LONGEST_TEXT)), LONGEST_TEXT);
  }
}
