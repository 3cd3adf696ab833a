import type { PageData } from '../data.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { ask, priceText } from './call.ts';
import { valuesOf } from './check.ts';
import { element, say } from './dom.ts';
import { withFactors } from './factor.ts';
import type { Pin } from './pin.ts';
import { judge } from './verdict.ts';

/** What a request costs in words; nothing where it costs nothing. */
export function costOf({ prices = [] }: PublicEndpoint): string {
  return prices.map(priceText).join(', or ');
}

/** An endpoint at a glance. */
export function endpointCard(endpoint: PublicEndpoint, pin: Pin, { auth: ways }: PageData): HTMLElement {
  const { id, api, name, auth, encoding } = endpoint;
  const cost = costOf(endpoint);
  const types = encoding === undefined ? 'raw JSON' : withFactors(encoding.type, encoding.times).join(', ');
  const facts = [
    ['Type', types],
    ['Access', auth.map((type) => ways[type]?.title ?? type).join(' or ')],
    ['Price', cost === '' ? 'none' : cost],
  ];
  const isOpen = auth.some((type) => ways[type]?.open === true);
  const isReady = endpoint.reserved.length === 0 && endpoint.parameters.every(({ required }) => !required);
  return element(
    'section',
    { class: 'card' },
    element('h2', {}, element('a', { href: `#${id}` }, name), ' ', element('span', { class: 'tag' }, api)),
    element(
      'dl',
      { class: 'facts' },
      ...facts.flatMap(([term = '', value = '']) => [element('dt', {}, term), element('dd', {}, value)]),
    ),
    ...(isOpen && isReady ? lastValue(endpoint, pin) : []),
  );
}

/** Asks only when somebody says so: each answer costs the upstream a call and counts against the limit of requests. */
function lastValue({ id, name, encoding }: PublicEndpoint, pin: Pin): HTMLElement[] {
  const shown = element('output', {});
  const button = element(
    'button',
    { type: 'button', class: 'quiet', 'aria-label': `Last value of ${name}` },
    'Last value',
  );
  button.addEventListener('click', async () => {
    button.disabled = true;
    const asked = { endpointId: id, body: '{"parameters":{}}', headers: {} };
    const { text, problem } = await ask(asked, new AbortController().signal, () => undefined);
    button.disabled = false;
    if (problem !== undefined) return say(shown, problem);
    const verdict = judge(text, pin.address, asked);
    const { verified } = verdict;
    if (verified === undefined) return say(shown, verdict.headline);
    const how = { types: encoding?.type ?? '', times: encoding?.times ?? '', paths: encoding?.path ?? '' };
    const values = valuesOf(verdict, how).map(({ human, exact }) => human ?? exact);
    say(shown, verified.kind === 'raw' ? verified.json.slice(0, 120) : values.join(', '));
  });
  return [element('p', {}, button, ' ', shown)];
}
