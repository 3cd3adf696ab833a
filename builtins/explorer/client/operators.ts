import { askMany, type ManyAnswers, medianOf, QuorumError, sortedValues } from '../../../verify/ask-many.ts';
import type { PageData } from '../data.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { serviceUrl } from './call.ts';
import { element, fact, say } from './dom.ts';
import { scaled } from './factor.ts';
import type { Asked } from './form.ts';
import { humanOf } from './human.ts';
import type { Pin } from './pin.ts';

/** Asks this service and those of the config for one integer, where anybody may ask for it; else it is nothing. */
export function operatorsPart(
  endpoint: PublicEndpoint,
  pin: Pin,
  { operators = [], auth: ways }: PageData,
  current: () => Asked,
): HTMLElement[] {
  const { id: endpointId, mode, auth, encoding } = endpoint;
  const isOpen = auth.some((type) => ways[type]?.open === true);
  if (operators.length === 0 || mode !== 'sync' || !isOpen || encoding?.type !== 'int256') return [];
  const [scale = { type: 'int256' }] = scaled('int256', encoding.times);
  const shown = (value: bigint) => humanOf(String(value), scale) ?? String(value);
  const all = [serviceUrl('').href, ...operators.map(({ url }) => url)];
  const status = element('p', { class: 'hint', role: 'status' }, 'Sends the request above to each of them.');
  const facts = element('dl', { class: 'facts' });
  const button = element('button', { type: 'button', class: 'quiet' }, `Ask all ${all.length} operators`);
  button.addEventListener('click', async () => {
    button.disabled = true;
    say(status, 'Waiting for the answers…');
    facts.replaceChildren();
    const asked = [{ url: serviceUrl('').href, signer: pin.address }, ...operators];
    // Of all: the page waits for every answer, and shows those that are good.
    const k = new Set(asked.map(({ signer }) => signer.toLowerCase())).size;
    const { parameters } = JSON.parse(current().body);
    const found: Found = await askMany({ operators: asked, endpointId, parameters, k }).catch(failed);
    button.disabled = false;
    say(status, found.problem ?? `${found.answers.length} of ${all.length} answers are good.`);
    facts.replaceChildren(
      ...spreadOf(found).flatMap(([term, value]) => fact(term, shown(value))),
      ...found.answers.flatMap(({ url, value }) => fact(url, shown(value))),
      ...found.failures.flatMap(({ url, reason, message }) => fact(url, `${reason}: ${message}`)),
    );
  });
  return [element('div', {}, status, facts, element('div', { class: 'actions' }, button))];
}

interface Found extends ManyAnswers {
  /** Why nobody was asked. */
  readonly problem?: string;
}

function failed(error: unknown): Found {
  if (!(error instanceof QuorumError)) return { value: 0n, answers: [], failures: [], problem: String(error) };
  const { answers, failures } = error;
  return { value: medianOf(answers), answers, failures };
}

/** Nothing where there is no good answer. */
function spreadOf({ value, answers }: Found): [string, bigint][] {
  const values = sortedValues(answers);
  const [least, greatest] = [values[0], values.at(-1)];
  if (least === undefined || greatest === undefined) return [];
  return [
    ['Median', value],
    ['Spread', greatest - least],
  ];
}
