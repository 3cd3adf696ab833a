/** A transfer by an authorisation (EIP-3009) pays for nothing on chain; one beside it does. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { checkPayment } from '../../builtins/auth-x402/payment.ts';
import { AUTHORIZATION_USED, type Mined, word } from '../../builtins/shared/chain.ts';

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const address = (digit: string) => `0x${digit.repeat(40)}` as const;
const [token, payer, stranger, recipient] = [address('A'), address('b'), address('C'), address('d')];
const terms = { token, amount: '5', recipient, expiry: 600 };

const log = (...topics: string[]) => ({ address: token.toLowerCase(), topics, data: `0x${'5'.padStart(64, '0')}` });
const transfer = (from: string) => log(TRANSFER, word(from), word(recipient));
const used = (by: string) => log(AUTHORIZATION_USED, word(by), word('0x01'));
const mined = (...logs: object[]) =>
  ({
    transaction: { from: payer, to: token, value: '0x0' },
    receipt: { status: '0x1', logs },
    minedAt: 0,
  }) as unknown as Mined;

it('a payment is found beside the authorisation of somebody else', () => {
  for (const logs of [[transfer(payer)], [used(stranger), transfer(stranger), transfer(payer)]])
    checkPayment(mined(...logs), terms, payer, 0);
  for (const logs of [
    [used(stranger), transfer(stranger)],
    [used(payer), transfer(payer)],
  ])
    assert.throws(() => checkPayment(mined(...logs), terms, payer, 0), { message: 'Payment does not match' });
});
