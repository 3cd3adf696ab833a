import { definePlugin, stateEngine, Type } from '../../plugins-sdk/index.ts';
import { FileState } from './file-state.ts';

/** State that outlives its process, in a file that it alone uses. */
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
      processes: 'one',
      timeout: 'none',
      file: ({ path }) => path,
      open: ({ path }, services) => new FileState(services.path(path), services),
    }),
  },
  setup: () => ({}),
});
