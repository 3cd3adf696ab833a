/** Findings about a whole file: its syntax, its durations, and misplaced keys. */
import { casesOf } from '../case-files.ts';

casesOf('files');
