import assert from 'node:assert/strict';
import { refundedAs } from '../../builtins/auth-x402/redemptions.ts';
import { type About, type Ticket, ticketFor } from '../../builtins/shared/payment-mark.ts';
import { Payments, type PaymentsOptions } from '../../builtins/shared/payments.ts';
import { silentLog } from '../../plugins-sdk/log.ts';
import { Debts, type StateArea } from '../../plugins-sdk/state.ts';
import { testEndpoint } from '../../service/testing.ts';

/** What a command printed, a table for each payment, without the time. */
export function tableOf(stdout: string): Record<string, string>[] {
  const blocks = stdout.split('\n\n').filter((text) => / {2}/.test(text));
  return blocks.map((block) => {
    const rows = block
      .trim()
      .split('\n')
      .map((line) => /^(\S+) +(.*)$/.exec(line)?.slice(1) ?? []);
    const { since = '', ...rest } = Object.fromEntries(rows) as Record<string, string>;
    assert.match(since, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    return rest;
  });
}

/** The payments of one process. */
export function paymentsOn(area: StateArea, stateEngine?: PaymentsOptions['stateEngine']): Payments {
  return new Payments({ area, index: area, stateEngine, debts: new Debts(), ending: new Set(), log: silentLog });
}

/** A hold on a payment, yet to be taken. */
export function ticketOf(payment: string, about: Partial<About> = {}): Ticket {
  const sold = { network: 'eip155:1', asset: '0x2', amount: '1' };
  const exchange = { requestId: '0x01', endpoint: testEndpoint() } as const;
  return ticketFor(payment, exchange, { since: 0, ...sold, payer: '0x3', transaction: payment, ...about });
}

/** What a request does with a payment, in the words of the native scheme. */
export function steps(payments: Payments, ticket: Ticket, life: number) {
  let refunds = 0;
  return {
    hold: async () => {
      const mark = await payments.hold(ticket, life);
      refunds = mark?.refunds ?? 0;
      return mark?.by === ticket.token;
    },
    redeem: () => payments.advance(ticket, 'redeemed', life),
    answer: async () => {
      const mark = await payments.end(ticket, { outcome: { state: 'answered' }, life });
      return mark?.by === ticket.token && mark.state === 'answered';
    },
    giveBack: async (counts = true) => {
      const mark = await payments.end(ticket, { outcome: refundedAs(refunds, counts), life });
      return mark !== undefined && mark.by === undefined;
    },
    release: () => payments.end(ticket),
  };
}
