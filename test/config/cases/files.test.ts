/** What is said of a file as a whole: its form, its durations, and what works otherwise than meant. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('files', definitions());
