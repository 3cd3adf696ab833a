import type { Measure, Meters } from '../plugins-sdk/meters.ts';
import type { SharedState } from '../plugins-sdk/state/area.ts';

/** A command as metrics name it, whose names do not change with those of the methods. */
export type StateCommand = 'get' | 'swap' | 'take';

/** How the commands of an engine are measured. */
export type Measured = (command: StateCommand, outcome: 'done' | 'failed' | 'rejected', milliseconds: number) => void;

/** What is measured of an engine. */
export function stateMeters(meters: Meters, state: Pick<SharedState, 'available'>): Measured {
  // An alert sees the first failure only beside a zero before it.
  const initial = (['get', 'swap', 'take'] as const).flatMap((command) =>
    (['done', 'failed', 'rejected'] as const).map((outcome) => ({ command, outcome })),
  );
  const commands: Measure<'command' | 'outcome'> = meters.counter({
    name: 'state_commands_total',
    help: 'Commands to the engine of settings.state: done, failed, or rejected while it was away',
    labels: ['command', 'outcome'],
    initial,
  });
  const seconds: Measure<'command'> = meters.histogram({
    name: 'state_command_duration_seconds',
    help: 'Duration of commands to the engine of settings.state',
    labels: ['command'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  });
  const available = { name: 'state_available', help: 'Whether the engine of settings.state answers: 1 or 0' };
  meters.gauge({ ...available, across: 'min' }, () => (state.available() ? 1 : 0));
  return (command, outcome, milliseconds) => {
    commands({ command, outcome }, 1);
    if (outcome !== 'rejected') seconds({ command }, milliseconds / 1000);
  };
}
