/** Findings about the values of parameters: maps, schemas, and members of bodies. */
import { casesOf } from '../case-files.ts';

casesOf('parameter-values');
