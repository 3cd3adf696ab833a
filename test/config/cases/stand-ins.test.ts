/** What is said of plugins, packages and isolation, and of what the loader itself checks, whatever the features are. */
import { casesOf } from '../case-files.ts';
import { builtins } from '../support.ts';

casesOf('stand-ins', builtins);
