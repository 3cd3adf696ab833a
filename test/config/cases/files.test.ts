/** Findings about a whole file: its syntax, its durations, misplaced keys, and values that surprise. */
import { casesOf } from '../case-files.ts';

casesOf('files');
