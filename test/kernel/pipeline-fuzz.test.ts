import { fuzzPipelines } from '../support/fuzz/run.ts';

/** About every act at every stage, twice; `pipeline-fuzz.slow.ts` makes many more. */
fuzzPipelines(1800);
