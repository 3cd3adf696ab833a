import { PluginProblem } from '../../../plugins-sdk/host/plugin-problem.ts';
import { withTimeout } from '../../../plugins-sdk/lib/time/with-timeout.ts';
import { clipped } from './clipped.ts';
import type { Peer } from './peer.ts';
import type { Order, Report, Thrown } from './protocol.ts';
import { LONGEST_TEXT } from './remote-call.ts';

/** Asks a process one thing after the other while it gets ready. */
export class Talk {
  readonly #peer: Peer;
  readonly #reports: Report[] = [];
  /** What was asked and not answered; a process is asked to load when it is made. */
  #asked = 1;
  #tell: (() => void) | undefined;

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  /** Takes what the process reports. @throws Error when nobody has asked */
  readonly take = (report: Report): void => {
    if (this.#asked === 0) throw new Error('it reported what nobody has asked for');
    this.#asked -= 1;
    this.#reports.push(report);
    this.#tell?.();
  };

  /** @throws what the plugin threw, and PluginProblem when the process ends instead. */
  async next<K extends Report['k']>(kind: K): Promise<Report & { readonly k: K }> {
    const came = new Promise<void>((resolve) => {
      this.#tell = resolve;
      if (this.#reports.length > 0) resolve();
    });
    const over = await Promise.race([came, this.#peer.ended]);
    const report = this.#reports.shift();
    if (report === undefined) throw new PluginProblem(`its process has ended: ${over}`);
    if (report.k === 'failed') throw rebuilt(report.error, this.#peer);
    if (report.k !== kind)
      throw new PluginProblem(`its process reports "${clipped(report.k, 20)}" instead of "${kind}"`);
    return report as Report & { readonly k: K };
  }

  ask<K extends Report['k']>(order: Order, kind: K): Promise<Report & { readonly k: K }> {
    this.#asked += 1;
    this.#peer.order(order);
    return this.next(kind);
  }
}

function rebuilt({ problem, message, stack, issues }: Thrown, { locate }: Pick<Peer, 'locate'>): Error {
  if (problem !== undefined) return new PluginProblem(problem);
  const error = new Error(clipped(String(message), LONGEST_TEXT));
  error.stack = locate(clipped(String(stack), LONGEST_TEXT));
  return issues === undefined ? error : Object.assign(error, { issues });
}

/** Has a process make its plugin. @throws Error and PluginProblem */
export function ready(
  peer: Peer,
  { config, patience }: { readonly config: unknown; readonly patience: number },
  listen: (take: (report: Report) => void) => void,
): Promise<void> {
  const talk = new Talk(peer);
  listen(talk.take);
  const made = async () => {
    await talk.next('loaded');
    await talk.ask({ k: 'make', config }, 'made');
  };
  return withTimeout(patience, made(), () => {
    throw new PluginProblem(`is not ready after ${patience} ms`);
  });
}
