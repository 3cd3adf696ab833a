/** Warnings about a whole file, and values that surprise. */
import { casesOf } from '../case-files.ts';

casesOf('warnings');
