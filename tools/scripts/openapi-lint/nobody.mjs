/** An auth type that describes nothing of itself: the document says what is known of it. */
import { definePlugin, Refusal, Type } from 'signed-data-proxy/plugins-sdk';

export default definePlugin({
  name: 'nobody',
  budget: 'none',
  auth: { nobody: Type.Object({}, { additionalProperties: false }) },
  setup: () => ({
    hooks: {
      authenticate: {
        nobody: () => {
          throw new Refusal(401, 'Nobody');
        },
      },
    },
  }),
});
