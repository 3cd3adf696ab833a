/** Findings about the encryption of answers. */
import { casesOf } from '../case-files.ts';

casesOf('encryption');
