import type { Trial, TriedValue } from '../data.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { errorText, serviceUrl } from './call.ts';
import { copyButton, element, fact, say } from './dom.ts';
import { controlText, field, textControl } from './fields.ts';
import type { Asked } from './form.ts';
import type { Keys } from './keys.ts';

/** Lines of an answer that are shown. */
const MAX_LINES = 200;

/** A field for the operator's token, and a button that asks the upstream and shows what could be signed of its answer. */
export function operatorPart({ id }: PublicEndpoint, keys: Keys, current: () => Asked): HTMLElement {
  const token = textControl({ type: 'password', class: 'code' });
  keys.join('operator token', token);
  const hints = ['settings.explorer.operatorToken of the config; never stored.'];
  const read = () => controlText(token, true);
  const tokenField = field<string>({ label: 'Operator token', hints, control: token, read });
  const button = element('button', { type: 'submit' }, 'Try the upstream');
  const status = element('p', { class: 'hint', role: 'status' });
  const answer = element('pre', { class: 'code', hidden: '' });
  const values = element('dl', { class: 'facts' });
  const actions = element('div', { class: 'actions' }, button);
  const form = element('form', { novalidate: '', autocomplete: 'off' }, tokenField.element, actions);
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    say(status, 'Waiting for the upstream…');
    const tried = await tryOnce(id, token.value, current().body);
    button.disabled = false;
    const { problem, trial } = tried;
    say(status, problem ?? 'Nothing was signed. What each value would sign, and the encoding for the config:');
    answer.hidden = trial === undefined;
    say(answer, trial === undefined ? '' : shortened(JSON.stringify(trial.data, null, 2)));
    values.replaceChildren(...(trial === undefined ? [] : rowsOf(trial)));
  });
  return element('div', {}, form, status, answer, values);
}

interface Tried {
  readonly trial?: Trial;
  readonly problem?: string;
}

/** @param body of a request to the endpoint. Never rejects. */
async function tryOnce(endpointId: string, token: string, body: string): Promise<Tried> {
  try {
    const { parameters } = JSON.parse(body);
    const response = await fetch(serviceUrl('explorer/try'), {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Operator-Token': token },
      body: JSON.stringify({ endpointId, parameters }),
      cache: 'no-store',
      redirect: 'error',
    });
    const said = await response.json();
    return response.ok ? { trial: said } : { problem: String(said.error) };
  } catch (error) {
    return { problem: `The service cannot be reached: ${errorText(error)}` };
  }
}

function shortened(json: string): string {
  const lines = json.split('\n');
  const more = lines.length > MAX_LINES ? [`… ${lines.length - MAX_LINES} more lines`] : [];
  return [...lines.slice(0, MAX_LINES), ...more].join('\n');
}

function rowsOf({ values, own }: Trial): HTMLElement[] {
  const rows = values.flatMap((value) => rowOf(value.path, `${JSON.stringify(value.value)} → `, value));
  return own === undefined ? rows : [...rows, ...rowOf('As configured', '', own)];
}

function rowOf(term: string, from: string, value: TriedValue): HTMLElement[] {
  const { path, type, times, signs, refused } = value;
  const factor = times === undefined ? '' : `, times: '${times}'`;
  const encoding = element('code', {}, `encoding: { type: '${type}', path: ${JSON.stringify(path)}${factor} }`);
  const shown = `${from}${signs ?? `nothing: ${refused}`}`;
  const copy = copyButton(`the encoding of ${term}`, encoding);
  return fact(term, element('p', {}, shown), encoding, ' ', copy);
}
