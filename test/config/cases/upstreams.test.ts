/** Findings about calls of upstreams. */
import { casesOf } from '../case-files.ts';

casesOf('upstreams');
