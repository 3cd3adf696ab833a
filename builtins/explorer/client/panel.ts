import type { PageData } from '../data.ts';
import type { PublicEndpoint, ReservedParameter } from '../endpoint.ts';
import { ask, type CallOutcome } from './call.ts';
import { costOf } from './card.ts';
import { checkCard } from './check.ts';
import { codePart } from './code-part.ts';
import { copyButton, element, fact, factList, newId, say, VERBATIM } from './dom.ts';
import { withFactors } from './factor.ts';
import { type Asked, requestForm } from './form.ts';
import type { Keys } from './keys.ts';
import type { Pin } from './pin.ts';

/** All that the page shows of an endpoint. */
export function endpointPanel(endpoint: PublicEndpoint, pin: Pin, keys: Keys, data: PageData): HTMLElement {
  const answer = answerSection(endpoint, pin, data.node);
  let running: AbortController | undefined;
  const submit = async (asked: Asked) => {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    form.stop.hidden = false;
    answer.wait('Waiting for the answer');
    const outcome = await ask(asked, mine.signal, answer.wait);
    // A later request took its place.
    if (running !== mine) return;
    running = undefined;
    form.stop.hidden = true;
    answer.show(outcome, asked);
  };
  const form = requestForm(endpoint, data.auth, keys, submit);
  form.element.append(codePart(form.element, endpoint, pin, form.current));
  form.stop.addEventListener('click', () => running?.abort());
  return element(
    'article',
    {},
    element('a', { class: 'back', href: '#' }, '← All endpoints'),
    ...headOf(endpoint, data),
    section('Request', form.element),
    answer.element,
  );
}

function section(title: string, ...children: Node[]): HTMLElement {
  const heading = element('h2', { id: newId() }, title);
  return element('section', { class: 'part', 'aria-labelledby': heading.id }, heading, ...children);
}

function headOf(endpoint: PublicEndpoint, { auth: ways, modes }: PageData): HTMLElement[] {
  const { id, api, name, description, mode, auth, encoding, remarks = [] } = endpoint;
  const shownId = element('code', {}, id);
  const access = auth.map((type) => ways[type]?.title ?? type);
  const title = modes[mode];
  const cost = costOf(endpoint);
  const facts = factList(
    fact('Endpoint ID', shownId, copyButton('the endpoint ID', shownId)),
    fact('Mode', title === undefined ? mode : `${mode}: ${title}`),
    fact('Access', access.join(' or ')),
    cost === '' ? [] : fact('Price', cost),
    fact(
      'Answer',
      ...(encoding === undefined ? ['the upstream’s JSON, its numbers as doubles, signed'] : encodingOf(encoding)),
      ...remarks.map((remark) => `; ${remark.replaceAll('`', '')}`),
    ),
    encoding !== undefined && /int|\*/.test(encoding.type) ? fact('Fractions', fractionsOf(encoding)) : [],
  );
  facts.classList.add('about-endpoint');
  return [
    element('p', { class: 'eyebrow' }, api),
    element('h1', { tabindex: '-1' }, name),
    ...(description === undefined ? [] : [element('p', { class: 'lead' }, description)]),
    facts,
  ];
}

/** What becomes of digits that an integer has no place for. */
function fractionsOf({ exact }: NonNullable<PublicEndpoint['encoding']>): string {
  return exact === true ? 'refused, where an integer would lose digits' : 'cut, where an integer loses digits';
}

/** What a client chooses is called what the client's field for it is called. */
function encodingOf({ type, path, times }: NonNullable<PublicEndpoint['encoding']>): (Node | string)[] {
  const named = (value: string, name: ReservedParameter) => (value === '*' ? name : value);
  const factor = times === undefined ? undefined : named(times, '_times');
  const types = element('code', {}, withFactors(named(type, '_type'), factor).join(', '));
  return [types, ' at ', element('code', {}, named(path, '_path')), ', ABI-encoded, signed'];
}

interface AnswerSection {
  readonly element: HTMLElement;
  readonly wait: (text: string) => void;
  show(outcome: CallOutcome, asked: Asked): void;
}

function answerSection(endpoint: PublicEndpoint, pin: Pin, node: string): AnswerSection {
  const card = checkCard(pin, node);
  const about = reply();
  const field = responseField(() => check());
  const part = section('Answer', ...about.elements, card.element, field.element);
  part.classList.add('answer');
  let shown: CallOutcome | undefined;
  let asked: Asked | undefined;
  const check = () => {
    if (asked === undefined) return;
    const nothing = shown?.problem !== undefined && !field.isChanged();
    card.element.hidden = nothing;
    field.hint.hidden = nothing;
    if (nothing) card.clear('Nothing signed to check');
    else card.check(field.text(), asked);
  };
  return {
    element: part,
    wait: (text) => {
      part.setAttribute('aria-busy', 'true');
      about.wait(text);
      field.element.hidden = true;
      card.element.hidden = false;
      card.clear('No answer yet');
    },
    show: (outcome, from) => {
      shown = outcome;
      asked = { ...from, endpointId: endpoint.id };
      part.removeAttribute('aria-busy');
      about.show(outcome);
      field.show(outcome.text);
      (outcome.problem === undefined ? card.element : about.problem).scrollIntoView({ block: 'nearest' });
    },
  };
}

/** What is known of an answer beside its text. */
function reply() {
  const status = element('p', { class: 'status', role: 'status' });
  const requestId = element('code');
  const copy = copyButton('the request ID', requestId);
  const request = element('p', { class: 'request', hidden: '' }, 'Request ', requestId, copy);
  const problem = element('p', { class: 'notice', role: 'alert', hidden: '' });
  const advice = element('p', { class: 'hint advice', role: 'status' });
  return {
    elements: [status, request, problem, advice],
    problem,
    wait: (text: string) => {
      problem.hidden = true;
      request.hidden = true;
      say(advice, '');
      say(status, `${text}…`);
    },
    show: (outcome: CallOutcome) => {
      const code = outcome.status === undefined ? '' : `${outcome.status} `;
      const age = outcome.isStale ? ': an older answer, since the upstream fails' : '';
      say(status, `${`${code}${outcome.statusText}`.trim()}, ${outcome.milliseconds} ms${age}`);
      say(requestId, outcome.requestId ?? '');
      request.hidden = outcome.requestId === undefined;
      say(problem, outcome.problem ?? '');
      problem.hidden = outcome.problem === undefined;
      say(advice, adviceOf(outcome));
      problem.classList.toggle('bad', outcome.status !== 402);
    },
  };
}

/** What a person can do where the fault is not in the request. */
function adviceOf({ status = 0, requestId, problem }: CallOutcome): string {
  if (problem === undefined || requestId === undefined || (status >= 300 && status < 500)) return '';
  const who = status === 502 || status === 504 ? 'The service is up, but the API behind it failed. ' : '';
  const when = problem.includes('Try again') ? '' : 'Try again in a minute. ';
  return `${who}${when}If that does not help, send the operator the request ID above: the log says what failed.`;
}

/** The answer in a field that can be changed, so that anyone can see what the signature is good for. */
function responseField(changed: () => void) {
  const area = element('textarea', { class: 'code', id: newId(), rows: '8', ...VERBATIM });
  const hint = element('p', { class: 'hint', id: newId() }, 'Change a byte, and see what the check says.');
  area.setAttribute('aria-describedby', hint.id);
  const undo = element('button', { type: 'button', class: 'quiet', hidden: '' }, 'Undo changes');
  const caption = element('div', { class: 'caption' }, element('label', { for: area.id }, 'Response'), undo);
  const field = element('div', { class: 'field', hidden: '' }, caption, area, hint);
  let given = '';
  const isChanged = () => area.value !== given;
  const update = () => {
    undo.hidden = !isChanged();
    changed();
  };
  area.addEventListener('input', update);
  undo.addEventListener('click', () => {
    area.value = given;
    area.focus();
    update();
  });
  const show = (text: string) => {
    given = text;
    area.value = text;
    area.rows = Math.min(Math.max(text.split('\n').length + 2, 4), 24);
    field.hidden = text === '';
    update();
  };
  return { element: field, hint, isChanged, text: () => area.value, show };
}
