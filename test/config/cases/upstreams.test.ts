/** Findings about calls of upstreams. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('upstreams', definitions());
