/** Whatever plugins do at any stage, each of thousands of requests ends as the rules say. */
import { fuzzPipelines } from '../support/fuzz/run.ts';

/** `REQUESTS` has it go on for longer. */
const requests = Number(process.env.REQUESTS ?? 12_000);
fuzzPipelines('calm', requests / 3);
fuzzPipelines('wild', (requests * 2) / 3);
