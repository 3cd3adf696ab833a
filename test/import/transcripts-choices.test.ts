/** Which choices of a document `import` leaves to clients, to the letter. */
import { transcripts } from '../cli/transcripts.ts';

transcripts(import.meta.url, 'choices');
