/** Whatever plugins do at any stage, each request ends as the rules say. */
import { fuzzPipelines } from '../support/fuzz/run.ts';

/** About every act at every stage, twice; `pipeline-fuzz.slow.ts` makes many more. */
fuzzPipelines(1800);
