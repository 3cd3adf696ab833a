import { html } from 'htm/preact';
import type { ComponentChildren, RenderableProps, VNode } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { PublicEndpoint } from '../endpoint.ts';
import type { Field } from './fields.ts';
import type { Page } from './page.ts';

/** Tells a person where to get a signer's address, if not from the service. */
export const ELSEWHERE = 'from the operator, or from the TXT record at _node.<domain of the API>';

/** The properties of most views. */
export interface Shown {
  readonly endpoint: PublicEndpoint;
  readonly page: Page;
}

/** Returns a term and its description, for a list of facts. */
export function fact(term: ComponentChildren, ...said: readonly ComponentChildren[]): VNode {
  return html`<dt>${term}</dt>
    <dd>${said}</dd>`;
}

let made = 0;

/** Returns an ID for an element that another one refers to. Preact's own IDs repeat when a root is rendered again. */
export function useNewId(): string {
  const [id] = useState(() => `e${made++}`);
  return id;
}

/** Shows a part of the page under a heading. */
export function Section({ title, extra = '', children }: RenderableProps<{ title: string; extra?: string }>) {
  return html`<section class="part ${extra}" aria-label=${title}>
    <h2>${title}</h2>
    ${children}
  </section>`;
}

/** Shows code with a button that copies it, or selects it where the clipboard is not allowed (plain HTTP). */
export function Copied({ what, text, isBlock = false }: { what: string; text: string; isBlock?: boolean }) {
  const source = useRef<HTMLElement>(null);
  const [label, setLabel] = useState('Copy');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setLabel('Copied');
    } catch {
      if (source.current) getSelection()?.selectAllChildren(source.current);
      setLabel('Selected');
    }
    setTimeout(() => setLabel('Copy'), 1500);
  };
  const code = html`<code ref=${source}>${text}</code>`;
  return html`${isBlock ? html`<pre>${code}</pre>` : code}
    <button type="button" class="quiet" aria-label="Copy ${what}" onClick=${copy}>
      <span aria-live="polite">${label}</span>
    </button>`;
}

/** Attributes of controls whose text is not prose. `autocorrect` is set by hand: not all browsers have it as a property. */
export const VERBATIM = {
  autocomplete: 'off',
  autocapitalize: 'off',
  spellcheck: false,
  ref: (control: Element | null) => control?.setAttribute('autocorrect', 'off'),
};

/** Makes an event listener that passes on a control's text. */
export function onText(use: (text: string) => void) {
  return ({ currentTarget }: { readonly currentTarget: { readonly value: string } }) => use(currentTarget.value);
}

/** Submits the form on Ctrl+Enter or Cmd+Enter in a field of several lines. */
function sendByKeys(event: KeyboardEvent & { readonly currentTarget: HTMLTextAreaElement }): void {
  if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  event.currentTarget.form?.requestSubmit();
}

/** Shows a control with its label, hints and fault. */
export function FieldView({ field, page }: { field: Field; page: Page }) {
  const { name, kind, required, hints, control, placeholder = '' } = field;
  const id = useNewId();
  const problem = page.problems.get(field.key);
  const attributes = {
    ...VERBATIM,
    ...{ id, placeholder, value: page.textOf(field), class: control === 'line' ? '' : 'code' },
    'aria-describedby': [...hints.keys(), 'problem'].map((part) => `${id}-${part}`).join(' '),
    'aria-required': required ? 'true' : undefined,
    'aria-invalid': problem === undefined ? undefined : 'true',
    onInput: onText((text) => page.type(field, text)),
  };
  return html`<div class="field">
    <div class="caption">
      <label for=${id}>${name}</label>
      <span class="tag">${kind}</span>
      ${required && html`<span class="tag must">required</span>`}
    </div>
    ${hints.map((hint, i) => html`<p class="hint" id="${id}-${i}">${hint}</p>`)}
    ${controlOf(field, attributes)}
    <p class="problem" id="${id}-problem" hidden=${problem === undefined}>${problem}</p>
  </div>`;
}

function controlOf({ control, choices, suggestions }: Field, attributes: { readonly id: string }): VNode {
  if (choices !== undefined) {
    const options = choices.map(([shown, json]) => html`<option value=${json}>${shown}</option>`);
    return html`<select ...${attributes}>${options}</select>`;
  }
  if (control === 'lines') return html`<textarea rows="3" onKeyDown=${sendByKeys} ...${attributes} />`;
  if (control === 'password') return html`<input type="password" ...${attributes} />`;
  if (suggestions === undefined) return html`<input type="text" ...${attributes} />`;
  const list = `${attributes.id}-list`;
  return html`<input type="text" list=${list} ...${attributes} />
    <datalist id=${list}>${suggestions.map((value) => html`<option value=${value} />`)}</datalist>`;
}
