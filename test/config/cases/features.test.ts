/** Findings about settings of plugins and of the service. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('features', definitions());
