/** What `import` makes of documents, to the letter. */
import { transcripts } from '../cli/transcripts.ts';

transcripts(import.meta.url);
