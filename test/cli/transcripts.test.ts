/** Commands, and to the letter what they print: `transcripts/` has them. */
import { transcripts } from './transcripts.ts';

transcripts(import.meta.url);
