import { html } from 'htm/preact';
import type { PublicEndpoint } from '../endpoint.ts';
import { priceText, serviceUrl } from './call.ts';
import { withFactors } from './factor.ts';
import type { Page, Sent } from './page.ts';
import { ELSEWHERE, fact, type Shown } from './parts.ts';
import { requestOf } from './request.ts';
import { useVerdict, type Verdict, valuesOf } from './verdict.ts';

/** Returns the price of a request in words; `''` if it is free. */
export function costOf({ prices = [] }: PublicEndpoint): string {
  return prices.map(priceText).join(', or ');
}

/** Returns the ways of access in words. */
export function accessOf({ auth }: PublicEndpoint): string {
  return auth.map(({ title }) => title).join(' or ');
}

/** Shows the first page: about the service, and a card for each endpoint. */
export function Welcome({ page, shown }: { page: Page; shown: readonly PublicEndpoint[] }) {
  const { node, openapi, title = 'Ask, and see who signed', description } = page.data;
  return html`<article class="welcome">
    <h1 tabindex="-1">${title}</h1>
    ${description && html`<p class="lead said">${description}</p>`}
    <p class="lead">
      Every answer of this service is signed. Choose an endpoint and send a request. This page recovers the signer from the
      answer, in your browser, and compares it with the address that you pin.
    </p>
    <dl class="facts">${fact('This service says it signs as', html`<code>${node}</code>`)}</dl>
    ${openapi && html`<p>For programs: <a href=${serviceUrl('openapi.json').href}>openapi.json</a> (OpenAPI 3.1).</p>`}
    <p class="hint">
      A page cannot vouch for itself. Before you rely on a signer, get its address elsewhere: ${ELSEWHERE}.
    </p>
    <div class="cards">${shown.map((endpoint) => html`<${Card} key=${endpoint.id} endpoint=${endpoint} page=${page} />`)}</div>
  </article>`;
}

/** Shows a card with the main facts of an endpoint. */
function Card({ endpoint, page }: Shown) {
  const { id, api, name, description, auth, encoding, parameters, reserved } = endpoint;
  const cost = costOf(endpoint);
  const types = encoding === undefined ? 'raw JSON' : withFactors(encoding.type, encoding.times).join(', ');
  const isOpen = auth.some(({ open }) => open);
  const isReady = reserved.length === 0 && parameters.every(({ required }) => !required);
  return html`<section class="card">
    <h2><a href="#${id}">${name}</a> <span class="tag">${api}</span></h2>
    ${description && html`<p class="about">${description}</p>`}
    <dl class="facts">
      ${fact('Type', types)} ${fact('Access', accessOf(endpoint))} ${cost && fact('Price', cost)}
      ${isOpen && isReady && fact('Last value', html`<${LastValue} endpoint=${endpoint} page=${page} />`)}
    </dl>
  </section>`;
}

/** Shows the last value. It is fetched only by a button: each call costs the upstream, and counts for the rate limit. */
function LastValue({ endpoint, page }: Shown) {
  const key = `card ${endpoint.id}`;
  const sent = page.sentFor(key);
  const isWaiting = Boolean(sent?.progress);
  const ask = () => page.send(key, requestOf(endpoint, [], page.textOf));
  const verdict = useVerdict(page, sent);
  const isBad = verdict.state === 'bad';
  const value = isBad ? (sent?.outcome?.problem ?? verdict.headline) : sent ? valueText(verdict, sent) : '';
  return html`<output class=${isBad ? 'bad' : ''}>
      ${isWaiting ? '…' : value}${sent?.outcome?.isStale && html`<span class="tag"> older, since the upstream fails</span>`}
    </output>
    <button type="button" class="quiet" aria-label="Last value of ${endpoint.name}" disabled=${isWaiting} onClick=${ask}>
      ${sent === undefined ? 'Show' : 'Again'}
    </button>`;
}

function valueText(verdict: Verdict, { asked }: Sent): string {
  if (verdict.verified?.kind === 'raw') return verdict.verified.json.slice(0, 120);
  const values = valuesOf(verdict, asked).map(({ human, exact }) => human ?? exact);
  return values.join(', ');
}
