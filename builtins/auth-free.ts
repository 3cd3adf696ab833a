import { closedObject, type EndpointDraft, type Finding, warning } from '../plugins-sdk/config.ts';
import { definePlugin } from '../plugins-sdk/index.ts';

/** Warns of `free` beside other methods: any one method of a list is enough, so the others have no effect. */
function besideOthers({ api, name, path, auth }: EndpointDraft): Finding[] {
  const others = auth.filter(({ type }) => type !== 'free').map(({ type }) => type);
  if (others.length === 0 || others.length === auth.length) return [];
  const message = `auth lists free beside ${[...new Set(others)].join(' and ')}: "${api}/${name}" is free for everyone: leave out free, or the others`;
  return [warning(path, message)];
}

/** Admits everyone. */
export const authFree = definePlugin({
  name: 'auth-free',
  auth: { free: closedObject({}) },
  check: ({ endpoints }) => endpoints.flatMap(besideOthers),
  openapi: () => ({ auth: { free: {} } }),
  setup: () => ({ hooks: { authenticate: { free: () => true } } }),
});
