import { definePlugin, Type } from '../../plugins-sdk/index.ts';
import { stateEngine } from '../../plugins-sdk/state.ts';
import { LmdbState } from './lmdb-state.ts';

/** Keeps state in a file, which outlives the processes and is shared by all of one machine. */
export const stateFile = definePlugin({
  name: 'state-file',
  engines: {
    file: stateEngine({
      schema: Type.Object({
        path: Type.String({
          pattern: '[^/]$',
          description: 'a file, relative to the config file; made if there is none',
        }),
      }),
      timeout: 750,
      open: ({ path }, services) => new LmdbState(services.path(path), services),
    }),
  },
  setup: () => ({}),
});
