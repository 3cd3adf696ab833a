/** What operators can ask of standard payments, and what the chain says of those whose end is not known. */
import { randomId } from '../../lib/eth/random-id.ts';
import { createJsonRpc } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../plugins-sdk/config.ts';
import type { HttpClient, Services } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import { isHeld, lifeUntil, type Mark, type Payment } from '../shared/payment-mark.ts';
import { paymentOperations, shown } from '../shared/payment-operations.ts';
import type { Payments } from '../shared/payments.ts';
import { type Found, findAuthorization } from './authorizations.ts';
import { TYPE } from './terms.ts';

interface OperationsOptions extends Pick<Services, 'log' | 'now'> {
  readonly payments: Payments;
}

/** What operators are told to do. */
const CURES = {
  held: 'its request is under way, or its process has died: nothing was taken, and it ends with its authorisation',
  settling: 'it is being settled, or its process has died: payments --reconcile',
  unknown: 'the chain knows: payments --reconcile',
  settled: 'its money was taken and its answer signed: where that did not arrive, send the money back',
  'not settled': 'its money was not taken: the client can try again, or pay anew',
} as const;

/** What operators can ask of standard payments. */
export function operationsOn(options: OperationsOptions, client: HttpClient): Readonly<Record<string, Operation>> {
  return {
    ...paymentOperations({ ...options, type: TYPE, cures: CURES, refusal: refusalOf }),
    'payments reconcile': async ({ network = '', rpc = '', dryRun }) => {
      const asked = createJsonRpc(client, httpTarget(rpc));
      const results: OperationResult[] = [];
      for (const payment of await options.payments.open()) {
        if (payment.network !== network || payment.state === 'held') continue;
        const found = await findAuthorization(asked, payment);
        const result = await conclude(options, payment, found, dryRun !== undefined);
        results.push({ ...shown(TYPE, { ...payment, ...partOf(found) }), result });
      }
      return results;
    },
  };
}

/** Money that was taken buys nothing more by the same authorisation, which the chain takes once. */
function refusalOf(mark: Mark): string | undefined {
  const { state, transaction } = mark;
  if (state === 'settled')
    return `its money was taken (transaction ${transaction}), and the chain takes an authorisation once: send the money back instead`;
  if (state === 'settling' || state === 'unknown')
    return 'its money may have been taken: ask the chain with "payments --reconcile" first';
  return isHeld(mark)
    ? 'a request holds the payment: it is free at its end, or with the end of its authorisation'
    : undefined;
}

function partOf(found: Found): Partial<Pick<Mark, 'state' | 'transaction'>> {
  if (found.kind === 'taken') return { state: 'settled', transaction: found.transaction };
  return found.kind === 'void' ? { state: 'not settled' } : {};
}

/** Remembers what the chain is certain of. Nothing is freed: what was not taken can never be, since it has ended. */
async function conclude(
  { payments, log, now }: OperationsOptions,
  payment: Payment,
  found: Found,
  isDry: boolean,
): Promise<string> {
  if (found.kind === 'open') return `still unknown: ${found.why}`;
  const said = found.kind === 'taken' ? 'the money was taken' : `the money was not taken: ${found.why}`;
  if (isDry) return `${said}; nothing was changed`;
  const { payment: _, before: __, ...mark } = payment;
  const { requestId, endpoint, network, asset, amount, payer, nonce, validBefore } = mark;
  const life = lifeUntil(Number(validBefore) * 1000, now());
  if (!(await payments.replace(payment, { ...mark, by: randomId(), ...partOf(found) }, life)))
    return 'still unknown: a request uses it just now';
  const fields = { requestId, endpoint, network, asset, amount, payer, nonce };
  if (found.kind === 'taken') {
    await payments.index.add(found.transaction, payment.payment, requestId);
    log.info('the chain says that a payment was settled', { ...fields, transaction: found.transaction });
  } else log.info('the chain says that a payment was not settled', { ...fields, detail: found.why });
  return said;
}
