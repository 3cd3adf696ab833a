import type { Exchange } from '../../../kernel/exchange.ts';
import { isRefusal } from '../../../kernel/refusal.ts';
import type { StageName } from '../../../kernel/stages.ts';
import type { HttpResponse, RequestOutcome, SignedResponse } from '../../../kernel/values.ts';
import type { Plan } from './plan.ts';
import { isSigned } from './sound.ts';

type RunState = 'pending' | 'answered' | 'refused' | 'not begun';

/** What became of one request. */
export class Trace {
  readonly plan: Plan;
  readonly exchange: Exchange;
  readonly settled = new Map<Exchange, RequestOutcome['kind']>();
  readonly runs: { state: RunState }[] = [];
  isServed = false;
  isOver = false;
  /** Answers that observers were told of. */
  sent = 0;
  readonly #blame: (what: string) => void;

  constructor(plan: Plan, exchange: Exchange, blame: (what: string) => void) {
    this.plan = plan;
    this.exchange = exchange;
    this.#blame = (what) => blame(`${plan.name} (${plan.endpoint.mode}, ${JSON.stringify(plan.leaving)}): ${what}`);
  }

  blame(what: string): void {
    this.#blame(what);
  }

  /** A function of some plugin is asked. */
  asked(stage: StageName, exchange: Exchange | undefined): void {
    if ((stage === 'sign' || stage === 'approve') && exchange !== undefined && this.settled.has(exchange))
      this.blame(`${stage} was asked after concluded`);
  }

  settle(outcome: RequestOutcome, exchange: Exchange): void {
    if (this.settled.has(exchange)) this.blame(`settled twice, as ${this.settled.get(exchange)} and ${outcome.kind}`);
    this.settled.set(exchange, outcome.kind);
  }

  /** The mode runs the rest. */
  ran(running: Promise<SignedResponse>): Promise<SignedResponse> {
    const run: { state: RunState } = { state: 'pending' };
    this.runs.push(run);
    running.then(
      ({ json }) => {
        run.state = 'answered';
        if (!isSigned(json, this.plan.endpoint.id)) this.blame(`an answer that nobody signed: ${json}`);
      },
      // What the kernel says to a mode that asks too late or too often is no refusal.
      (error) => {
        run.state = isRefusal(error) ? 'refused' : 'not begun';
      },
    );
    return running;
  }

  /** The client's response, or what is made into one. */
  ended(end: HttpResponse | { readonly thrown: unknown }): void {
    if (!('thrown' in end)) {
      const { status } = end;
      if (!(status >= 200 && status <= 599)) this.blame(`a response of status ${status}`);
      return;
    }
    const { thrown } = end;
    if (!isRefusal(thrown) || !(thrown.status >= 400 && thrown.status <= 599) || !Object.isFrozen(thrown))
      this.blame(`no refusal: ${String(thrown)}`);
  }

  /** All is over. */
  check(): void {
    if (!this.isOver) this.blame('never ended');
    const count = (state: RunState) => this.runs.filter((run) => run.state === state).length;
    if (count('pending') > 0) this.blame('a run never ended');
    const kinds = [...this.settled.values()];
    const expected = this.isServed ? Math.max(1, count('answered') + count('refused')) : 0;
    if (kinds.length !== expected) this.blame(`settled ${kinds.length} times instead of ${expected}`);
    const signed = kinds.filter((kind) => kind === 'signed').length;
    if (signed !== count('answered')) this.blame(`${count('answered')} answers, ${signed} settled as signed`);
    if (this.sent > signed) this.blame(`${this.sent} answers were observed, of ${signed}`);
  }
}
