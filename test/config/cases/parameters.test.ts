/** Findings about parameters of endpoints. */
import { casesOf } from '../case-files.ts';

casesOf('parameters');
