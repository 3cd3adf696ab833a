import { fuzzPipelines } from '../support/fuzz/run.ts';

/** `REQUESTS` has it go on for longer. */
fuzzPipelines(Number(process.env.REQUESTS ?? 12_000));
