/** Findings about settings of plugins and of the service. */
import { casesOf } from '../case-files.ts';

casesOf('features');
