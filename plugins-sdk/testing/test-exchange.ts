import { control, Exchange } from '../../kernel/exchange.ts';
import { plainObject } from '../../kernel/refusal.ts';
import type { Parameters } from '../../kernel/values.ts';
import { randomId } from '../../lib/eth/hex.ts';
import type { RequestInput } from './inputs.ts';

/** An exchange whose duration a test may choose. */
export class TestExchange extends Exchange {
  #duration: number | undefined;

  set duration(milliseconds: number | undefined) {
    this.#duration = milliseconds;
  }

  override elapsed(): number {
    return this.#duration ?? super.elapsed();
  }
}

/** Makes the exchange of a test's request. */
export function exchangeOf(input: RequestInput): TestExchange {
  const { parameters, headers = {}, ip = '127.0.0.1', route = 'POST /endpoints/:endpointId' } = input;
  const [method = '', path = ''] = route.split(' ');
  const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  const exchange = new TestExchange({
    method,
    requestId: randomId(),
    route: path,
    headers: Object.fromEntries(lowerCase),
    socketAddress: ip,
  });
  if (parameters !== undefined) control.receive(exchange, plainObject(parameters) as Parameters);
  return exchange;
}
