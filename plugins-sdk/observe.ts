/** The SDK's entry for plugins that measure, trace or record requests, or that operators watch and command. */

export type { CallEvent, StageEvent } from '../kernel/hooks.ts';
export type { RequestOutcome } from '../kernel/values.ts';
export { type ConnectionLimit, limitConnections } from './connection-limits.ts';
export { askedFor, redirectTarget, unknownEndpointId } from './context-key.ts';
export type { Operation, OperationResult } from './define.ts';
export * from './failure-class.ts';
export type { Instrument, Labels, Measure, MeterSink, Meters } from './meters.ts';
export { signedFacts } from './results/answers.ts';
export type { Dependency } from './services.ts';
