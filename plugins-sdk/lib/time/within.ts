export { withTimeout as within } from './with-timeout.ts';
