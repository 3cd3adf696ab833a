/** A plugin that never gives way to whoever asks for that. */
export default {
  name: 'spin',
  hooks: {
    onHttpRequest({ headers }) {
      if (headers['x-spin'] !== undefined) for (;;);
    },
  },
};
