/** A plugin that rejects every request, and leaves some work to the background: the body of a function of `services`. */
export function background(work: string): Record<string, string> {
  const text = `import { setTimeout as sleep } from 'node:timers/promises';
let setups = 0;
export default {
  name: 'p',
  setup(services) {
    setups += 1;
    const work = async () => {
      ${work}
    };
    const onHttpRequest = () => {
      services.background(work());
      return { reject: true, status: 403, message: 'no' };
    };
    return { hooks: { onHttpRequest }, stop: () => services.log.info('p stops') };
  },
};
`;
  return { 'p.mjs': text };
}
