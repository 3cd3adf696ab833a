import type { PageData } from '../data.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { ask, priceText } from './call.ts';
import { valuesOf } from './check.ts';
import { element, fact, factList, say } from './dom.ts';
import { withFactors } from './factor.ts';
import type { Pin } from './pin.ts';
import { judge, type Verdict } from './verdict.ts';

/** What a request costs in words; nothing where it costs nothing. */
export function costOf({ prices = [] }: PublicEndpoint): string {
  return prices.map(priceText).join(', or ');
}

/** An endpoint at a glance. */
export function endpointCard(endpoint: PublicEndpoint, pin: Pin, { auth: ways }: PageData): HTMLElement {
  const { id, api, name, description, auth, encoding } = endpoint;
  const cost = costOf(endpoint);
  const types = encoding === undefined ? 'raw JSON' : withFactors(encoding.type, encoding.times).join(', ');
  const isOpen = auth.some((type) => ways[type]?.open === true);
  const isReady = endpoint.reserved.length === 0 && endpoint.parameters.every(({ required }) => !required);
  return element(
    'section',
    { class: 'card' },
    element('h2', {}, element('a', { href: `#${id}` }, name), ' ', element('span', { class: 'tag' }, api)),
    ...(description === undefined ? [] : [element('p', { class: 'about' }, description)]),
    factList(
      fact('Type', types),
      fact('Access', auth.map((type) => ways[type]?.title ?? type).join(' or ')),
      fact('Price', cost === '' ? 'none' : cost),
      isOpen && isReady ? fact('Last value', ...lastValue(endpoint, pin)) : [],
    ),
  );
}

/** Asks only when somebody says so: each answer costs the upstream a call and counts against the limit of requests. */
function lastValue(endpoint: PublicEndpoint, pin: Pin): HTMLElement[] {
  const shown = element('output', {});
  const button = element('button', { type: 'button', class: 'quiet', 'aria-label': `Last value of ${endpoint.name}` });
  button.append('Show');
  button.addEventListener('click', async () => {
    button.disabled = true;
    say(shown, '…');
    const asked = { endpointId: endpoint.id, body: '{"parameters":{}}', headers: {} };
    const { text, problem, isStale } = await ask(asked, new AbortController().signal, () => undefined);
    button.disabled = false;
    button.textContent = 'Again';
    const verdict = judge(text, pin.address, asked);
    const { verified } = verdict;
    shown.classList.toggle('bad', verified === undefined);
    say(shown, verified === undefined ? (problem ?? verdict.headline) : shownValue(endpoint, verdict));
    if (isStale) shown.append(element('span', { class: 'tag' }, ' older, since the upstream fails'));
  });
  return [shown, button];
}

function shownValue({ encoding }: PublicEndpoint, verdict: Verdict): string {
  const how = { types: encoding?.type ?? '', times: encoding?.times ?? '', paths: encoding?.path ?? '' };
  if (verdict.verified?.kind === 'raw') return verdict.verified.json.slice(0, 120);
  return valuesOf(verdict, how)
    .map(({ human, exact }) => human ?? exact)
    .join(', ');
}
