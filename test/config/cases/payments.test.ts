/** Findings about payments, signers and the state of the service. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('payments', definitions());
