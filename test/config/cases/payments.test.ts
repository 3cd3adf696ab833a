/** Findings about payments, signers and the state of the service. */
import { casesOf } from '../case-files.ts';

casesOf('payments');
