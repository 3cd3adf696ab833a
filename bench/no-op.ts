import { serve } from './stack.ts';

/** The stack without any work: what an answer from memory is measured against. */
const kept = JSON.stringify({
  node: `0x${'1'.repeat(40)}`,
  endpointId: `0x${'2'.repeat(64)}`,
  timestamp: 1_795_252_338,
  data: `0x${'3'.repeat(64)}`,
  signature: `0x${'4'.repeat(130)}`,
});

serve({
  '/kept': (ctx) => {
    ctx.type = 'application/json';
    ctx.body = kept;
  },
});
