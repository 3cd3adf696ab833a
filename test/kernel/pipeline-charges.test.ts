/** No budget pays for what plugins wait for, whatever they do. */
import { fuzzPipelines } from '../support/fuzz/run.ts';

/** Every act that costs no time, at every stage, once; `pipeline-fuzz.slow.ts` makes many more. */
fuzzPipelines('calm', 400);
