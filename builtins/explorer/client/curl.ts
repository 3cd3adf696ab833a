import { type ServiceRequest, serviceUrl } from './call.ts';
import { copyButton, element } from './dom.ts';

/** Inside single quotes a shell takes every character as it is, but for the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A request as a shell command. Credentials are variables, so that the command can be shown to others. */
export function curlOf({ endpointId, body, headers }: ServiceRequest): string {
  const credentials = Object.keys(headers).map((name) => {
    return `-H "${name}: $${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}"`;
  });
  const words = [
    `curl -sS ${quoted(serviceUrl(`endpoints/${endpointId}`).href)}`,
    `-H ${quoted('Content-Type: application/json')}`,
    ...credentials,
    `-d ${quoted(body)}`,
  ];
  return words.join(' \\\n  ');
}

/** The command for what the form holds at present. */
export function curlPart(form: HTMLFormElement, current: () => ServiceRequest): HTMLElement {
  const code = element('code');
  const show = () => {
    code.textContent = curlOf(current());
  };
  form.addEventListener('input', show);
  show();
  return element(
    'details',
    { class: 'command' },
    element('summary', {}, 'As a curl command'),
    element('pre', {}, code),
    copyButton('the command', code),
  );
}
