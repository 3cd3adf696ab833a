/** What is said of payments, signers, and of where state is kept. */
import { definitions } from '../../../service/index.ts';
import { casesOf } from '../case-files.ts';

casesOf('payments', definitions());
