/** What is said of a config of the features. */
import { definitions } from '../../service/index.ts';
import { casesOf } from './case-files.ts';

casesOf('cases/', definitions());
