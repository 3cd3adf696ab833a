/** Findings about the encoding of answers. */
import { casesOf } from '../case-files.ts';

casesOf('encoding');
