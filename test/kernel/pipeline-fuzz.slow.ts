/** Whatever plugins do at any stage, each of thousands of requests ends as the rules say. */
import { fuzzPipelines } from '../support/fuzz/run.ts';

/** `REQUESTS` has it go on for longer. */
fuzzPipelines(Number(process.env.REQUESTS ?? 12_000));
