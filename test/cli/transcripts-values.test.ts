/** What is printed of numbers and texts, and of the values of answers. */
import { transcripts } from './transcripts.ts';

transcripts(import.meta.url, 'values');
