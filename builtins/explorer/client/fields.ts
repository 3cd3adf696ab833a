import { element, newId, say, VERBATIM } from './dom.ts';

/** What a field holds: a part of the request, nothing, or a mistake. */
export type Content<T> = { readonly value: T | undefined } | { readonly problem: string };

export interface Field<T> {
  readonly element: HTMLElement;
  /** Says what is wrong beside the field, and goes there. */
  complain(problem: string): void;
  /** Takes back what was said. */
  forgive(): void;
  read(): Content<T>;
}

type Control = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

interface FieldOptions<T> {
  readonly label: string;
  /** Where the value goes, or what it is. */
  readonly kind?: string;
  readonly required?: boolean;
  readonly hints?: readonly string[];
  readonly control: Control;
  /** Stands below the control. */
  readonly more?: HTMLElement;
  read(): Content<T>;
}

/** A control with its label, what there is to know of it and what is wrong with it. */
export function field<T>(options: FieldOptions<T>): Field<T> {
  const { label, kind, required = false, hints = [], control, more, read } = options;
  const problem = element('p', { class: 'problem', id: newId(), hidden: '' });
  const notes = hints.map((hint) => element('p', { class: 'hint', id: newId() }, hint));
  control.id = newId();
  control.setAttribute('aria-describedby', [...notes, problem].map(({ id }) => id).join(' '));
  if (required) control.setAttribute('aria-required', 'true');
  const forgive = () => {
    control.removeAttribute('aria-invalid');
    problem.hidden = true;
    say(problem, '');
  };
  control.addEventListener('input', forgive);
  const tags = [
    ...(kind === undefined ? [] : [element('span', { class: 'tag' }, kind)]),
    ...(required ? [element('span', { class: 'tag must' }, 'required')] : []),
  ];
  return {
    element: element(
      'div',
      { class: 'field' },
      element('div', { class: 'caption' }, element('label', { for: control.id }, label), ...tags),
      ...notes,
      control,
      ...(more === undefined ? [] : [more]),
      problem,
    ),
    complain: (text) => {
      control.setAttribute('aria-invalid', 'true');
      say(problem, text);
      problem.hidden = false;
      control.focus();
    },
    forgive,
    read,
  };
}

/** A line of text; empty means not given. */
export function textControl(attributes: Readonly<Record<string, string>> = {}): HTMLInputElement {
  return element('input', { type: 'text', ...VERBATIM, ...attributes });
}

/** Several lines; Ctrl and Enter together send them, as Enter does from a line. */
export function areaControl(attributes: Readonly<Record<string, string>> = {}): HTMLTextAreaElement {
  const area = element('textarea', { rows: '3', ...VERBATIM, ...attributes });
  area.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    area.form?.requestSubmit();
  });
  return area;
}

/** The text of a control, or what is missing. */
export function controlText(control: Control, required: boolean): Content<string> {
  if (control.value !== '') return { value: control.value };
  return required ? { problem: 'This is required.' } : { value: undefined };
}

/** JSON, letter by letter as it was written: numbers keep their digits. */
export function jsonOf(control: Control, required: boolean): Content<string> {
  const text = control.value.trim();
  if (text === '') return controlText(element('input'), required);
  try {
    JSON.parse(text);
    return { value: text };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { problem: `This is not valid JSON: ${why}. A text needs quotation marks.` };
  }
}
