/** What is printed of a config. */
import { transcripts } from './transcripts.ts';

transcripts(import.meta.url, 'config');
