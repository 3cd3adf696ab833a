/** Findings about parameters of endpoints. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('parameters', definitions());
