/** Findings about the encoding of answers. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('encoding', definitions());
