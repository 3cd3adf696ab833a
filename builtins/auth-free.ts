import { definePlugin, Type } from '../plugins-sdk/index.ts';

/** Lets everyone in. */
export const authFree = definePlugin({
  name: 'auth-free',
  budget: 'none',
  auth: { free: Type.Object({}, { additionalProperties: false }) },
  setup: () => ({ hooks: { authenticate: { free: () => true } } }),
});
