import type { PublicEndpoint } from '../endpoint.ts';
import { serviceUrl } from './call.ts';
import { type Code, variableOf } from './code.ts';
import { copyButton, element } from './dom.ts';
import type { Asked } from './form.ts';
import type { Pin } from './pin.ts';
import { javascriptOf } from './script.ts';

/** Inside single quotes a shell takes every character as it is, but for the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function curlOf({ url, asked: { body, headers } }: Code): string {
  const words = [
    `curl -sS ${quoted(url)}`,
    `-H ${quoted('Content-Type: application/json')}`,
    ...Object.keys(headers).map((name) => `-H "${name}: $${variableOf(name)}"`),
    `-d ${quoted(body)}`,
  ];
  return words.join(' \\\n  ');
}

const LANGUAGES: readonly (readonly [name: string, write: (code: Code) => string])[] = [
  ['As a curl command', curlOf],
  ['In JavaScript, with the check of the signature', javascriptOf],
];

/** Code for what the form holds at present. */
export function codePart(form: HTMLFormElement, endpoint: PublicEndpoint, pin: Pin, current: () => Asked): HTMLElement {
  const url = serviceUrl(`endpoints/${endpoint.id}`).href;
  const parts = LANGUAGES.map(([name, write]) => {
    const text = element('code');
    const copy = copyButton('the code', text);
    return {
      details: element('details', {}, element('summary', {}, name), element('pre', {}, text), copy),
      show: (code: Code) => {
        text.textContent = write(code);
      },
    };
  });
  const show = () => {
    const code = { endpoint, asked: current(), url, node: pin.address };
    for (const part of parts) part.show(code);
  };
  form.addEventListener('input', show);
  pin.watch(show);
  show();
  return element('div', { class: 'command' }, ...parts.map(({ details }) => details));
}
