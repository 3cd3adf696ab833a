import { decodeAbi } from '../../../lib/eth/decode-abi.ts';
import { copyButton, element, fact, icon, newId, say } from './dom.ts';
import { scaled, withFactors } from './factor.ts';
import { textControl } from './fields.ts';
import type { Asked } from './form.ts';
import { humanOf, utcOf } from './human.ts';
import type { Pin } from './pin.ts';
import { judge, type Verdict } from './verdict.ts';

const CHECK = icon.bind(undefined, 'm5 12.5 4.5 4.5L19 7');
const CROSS = icon.bind(undefined, 'm6 6 12 12M18 6 6 18');
const DASH = icon.bind(undefined, 'M6 12h12');

const OWN_ADDRESS =
  'The service itself gave this address, and a page cannot vouch for itself. Pin one that you got elsewhere: from the operator, or from the TXT record at _node.<domain of the API>.';
const OTHER_ADDRESS = 'This is your own choice; the service gives another address for itself.';

/** How the values of an answer are encoded. */
export type Encoding = Pick<Asked, 'types' | 'times' | 'paths'>;

/** The card that says who signed. */
export interface CheckCard {
  readonly element: HTMLElement;
  /** Checks a text. */
  check(text: string, asked: Asked): void;
  /** There is nothing to check. */
  clear(headline: string): void;
}

/** @param node the address that the service gives for itself. */
export function checkCard(pin: Pin, node: string): CheckCard {
  let last: (() => void) | undefined;
  const field = pinField(pin, node, () => last?.());
  const view = verdictView(field);
  return {
    element: view.element,
    check: (text, asked) => {
      last = () => {
        const verdict = judge(text, pin.address, asked);
        field.mark(verdict.badPin);
        view.show(verdict, asked);
      };
      last();
    },
    clear: (headline) => {
      last = undefined;
      view.clear(headline);
    },
  };
}

interface PinField {
  readonly input: HTMLInputElement;
  readonly problem: HTMLElement;
  readonly advice: HTMLElement;
  /** Shows whether what was typed is no address. */
  mark(isBad: boolean): void;
}

/** The address that must have signed. @param changed is called at once, too */
function pinField(pin: Pin, node: string, changed: () => void): PinField {
  const input = textControl({ class: 'code', id: newId() });
  const problem = element(
    'p',
    { class: 'problem', id: newId(), hidden: '' },
    'This is no address: 0x and 40 hex digits, and the right checksum if there are capitals.',
  );
  const advice = element('p', { class: 'hint', id: newId() });
  input.setAttribute('aria-describedby', `${problem.id} ${advice.id}`);
  const show = () => {
    if (input.value.trim() !== pin.address) input.value = pin.address;
    say(advice, pin.address.toLowerCase() === node.toLowerCase() ? OWN_ADDRESS : OTHER_ADDRESS);
    changed();
  };
  input.addEventListener('input', () => pin.set(input.value.trim()));
  pin.watch(show);
  show();
  const mark = (isBad: boolean) => {
    problem.hidden = !isBad;
    input.setAttribute('aria-invalid', String(isBad));
  };
  return { input, problem, advice, mark };
}

function verdictView({ input, problem, advice }: PinField) {
  const mark = element('span', { class: 'mark' }, DASH());
  const headline = element('strong', {}, 'No answer yet');
  const detail = element('p', { class: 'detail', hidden: '' });
  const signer = element('code', {}, '—');
  const facts = element('dl', { class: 'facts signed' });
  const recovered = [element('dt', {}, 'Recovered'), element('dd', { class: 'recovered' }, signer)];
  const label = element('label', { for: input.id }, 'Pinned');
  const pinned = fact(label, input, problem);
  const card = element(
    'div',
    { class: 'check', 'data-state': 'none' },
    element('div', { class: 'verdict' }, mark, element('p', { role: 'status' }, headline)),
    detail,
    element('dl', { class: 'addresses' }, ...recovered, ...pinned),
    facts,
    advice,
  );
  const announce = (state: string, symbol: Node, text: string, address = '—') => {
    card.dataset.state = state;
    mark.replaceChildren(symbol);
    say(headline, text);
    say(signer, address);
  };
  return {
    element: card,
    show: (verdict: Verdict, asked: Encoding) => {
      announce(verdict.state, verdict.state === 'good' ? CHECK() : CROSS(), verdict.headline, verdict.signer);
      say(detail, verdict.detail);
      detail.hidden = false;
      facts.replaceChildren(...factsOf(verdict, asked));
    },
    clear: (text: string) => {
      announce('none', DASH(), text);
      detail.hidden = true;
      facts.replaceChildren();
    },
  };
}

/** What was signed, once it is known to be. */
function factsOf(verdict: Verdict, encoding: Encoding): HTMLElement[] {
  const { verified } = verdict;
  if (verified === undefined) return [];
  const digest = element('code', {}, verified.digest);
  return [
    ...valuesOf(verdict, encoding).flatMap(({ name, human, exact }) =>
      fact(name, ...(human === undefined ? [] : [element('strong', {}, human)]), element('code', {}, exact)),
    ),
    ...fact('Signed', timeOf(verified.timestamp)),
    ...fact('Digest', digest, copyButton('the digest', digest)),
    ...(verified.requestHash === undefined ? [] : hashFact(verified.requestHash)),
  ];
}

/** A signed value, with its type and factor as the name. */
interface Value {
  readonly name: string;
  readonly human?: string | undefined;
  readonly exact: string;
}

/** The values of a good answer, where they are encoded in a way that is known. */
export function valuesOf({ verified }: Verdict, { types = '', times, paths = '' }: Encoding): Value[] {
  if (verified?.kind !== 'encoded') return [];
  const kinds = scaled(types, times);
  const names = withFactors(types, times);
  const places = paths.split(',');
  return (decodeAbi(verified.data, types) ?? []).map(({ type, value: exact }, i) => {
    // A path may have commas of its own: then nobody can tell which is whose.
    const path = places.length === kinds.length ? places[i] : undefined;
    return { name: names[i] ?? type, human: humanOf(exact, kinds[i] ?? { type }, path?.trim()), exact };
  });
}

function hashFact(hash: string): HTMLElement[] {
  const shown = element('code', {}, hash);
  return fact('Request hash', shown, copyButton('the request hash', shown));
}

/** @param timestamp Unix seconds; may be further away than a date can be. */
function timeOf(timestamp: number): string {
  const date = new Date(timestamp * 1000);
  if (Number.isNaN(date.getTime())) return `${timestamp} (Unix seconds)`;
  const utc = utcOf(timestamp * 1000);
  const age = Math.round(Date.now() / 1000 - timestamp);
  const unit = (size: number, name: string) => `${Math.floor(Math.abs(age) / size)} ${name}`;
  const span =
    Math.abs(age) < 120
      ? unit(1, 's')
      : Math.abs(age) < 7200
        ? unit(60, 'min')
        : Math.abs(age) < 172_800
          ? unit(3600, 'h')
          : unit(86_400, 'days');
  return age >= 0 ? `${utc}, ${span} ago` : `${utc}, ${span} from now by this machine’s clock`;
}
