import { createJsonRpc } from '../../lib/http/json-rpc.ts';
import { httpTarget } from '../../plugins-sdk/config.ts';
import type { HttpClient, Log } from '../../plugins-sdk/index.ts';
import type { Operation, OperationResult } from '../../plugins-sdk/observe.ts';
import { paymentOperations, shown } from '../shared/payment-operations.ts';
import type { PaymentRecord, PaymentRecords } from '../shared/payment-records.ts';
import { type Payments, ticketFor } from '../shared/payments.ts';
import { type Found, findAuthorization } from './authorizations.ts';
import { CLOCK_MARGIN_MS } from './purchases.ts';
import { TYPE } from './terms.ts';

interface OperationsOptions {
  readonly payments: Payments;
  readonly records: PaymentRecords;
  readonly log: Log;
  now(): number;
}

/** What operators are told to do. */
const CURES = {
  settling: 'it is being settled, or its process has died: payments --reconcile',
  unknown: 'the chain knows: payments --reconcile',
  settled: 'its money was taken and its answer signed: where that did not arrive, send the money back',
  'not settled': 'its money was not taken: the client can try again, or pay anew',
  released: 'the client can use it again, while it is valid',
} as const;

/** What operators can ask of standard payments. */
export function operationsOn(options: OperationsOptions, client: HttpClient): Readonly<Record<string, Operation>> {
  return {
    ...paymentOperations({ ...options, type: TYPE, cures: CURES, refusal: refusalOf }),
    'payments reconcile': async ({ network = '', rpc = '', dryRun }) => {
      const asked = createJsonRpc(client, httpTarget(rpc));
      const results: OperationResult[] = [];
      for (const record of await options.records.unfinished()) {
        if (record.network !== network) continue;
        const found = await findAuthorization(asked, record);
        const result = await conclude(options, record, found, dryRun !== undefined);
        results.push({ ...shown(TYPE, { ...record, ...partOf(found) }), result });
      }
      return results;
    },
  };
}

/** Money that was taken buys nothing more by the same authorisation, which the chain takes once. */
function refusalOf({ fate, transaction }: PaymentRecord): string | undefined {
  if (fate === 'settled')
    return `its money was taken (transaction ${transaction}), and the chain takes an authorisation once: send the money back instead`;
  if (fate === 'settling' || fate === 'unknown')
    return 'its money may have been taken: ask the chain with "payments --reconcile" first';
  return undefined;
}

function partOf(found: Found): Pick<PaymentRecord, 'transaction'> & Partial<PaymentRecord> {
  if (found.kind === 'taken') return { fate: 'settled', transaction: found.transaction };
  return found.kind === 'void' ? { fate: 'not settled' } : {};
}

/** Remembers what the chain is certain of. Nothing is freed: what was not taken can never be, since it has ended. */
async function conclude(
  { payments, records, log, now }: OperationsOptions,
  record: PaymentRecord,
  found: Found,
  isDry: boolean,
): Promise<string> {
  if (found.kind === 'open') return `still unknown: ${found.why}`;
  const said = found.kind === 'taken' ? 'the money was taken' : `the money was not taken: ${found.why}`;
  if (isDry) return `${said}; nothing was changed`;
  const ticket = ticketFor(record.payment);
  const { token } = found.kind === 'taken' ? ticket : record;
  const ended: PaymentRecord = { ...record, token, fate: 'settled', ...partOf(found) };
  if (found.kind === 'taken') {
    const life = Math.max(Number(record.validBefore) * 1000 - now(), 0) + CLOCK_MARGIN_MS;
    await payments.keep(ticket, life);
  }
  await records.close(ended);
  const { requestId, endpoint, network, asset, amount, payer, nonce, transaction } = ended;
  const fields = { requestId, endpoint, network, asset, amount, payer, nonce };
  if (found.kind === 'taken') log.info('the chain says that a payment was settled', { ...fields, transaction });
  else log.info('the chain says that a payment was not settled', { ...fields, detail: found.why });
  return said;
}
