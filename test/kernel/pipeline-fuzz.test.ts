/** Whatever plugins do at any stage, each request ends as the rules say. */
import { fuzzPipelines } from '../support/fuzz/run.ts';

/** Every act at every stage, twice; `pipeline-fuzz.slow.ts` makes many more. */
fuzzPipelines('wild', 1200);
