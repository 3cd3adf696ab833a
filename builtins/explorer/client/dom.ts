/**
 * Makes an element. Children that are strings become text, whatever is in them: no part of the page is ever made from markup.
 * @param attributes constant names; values may be anything, so none of them may be a name that runs code.
 */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A term and what is said of it, for a list of facts. */
export function fact(term: Node | string, ...value: readonly (Node | string)[]): HTMLElement[] {
  return [element('dt', {}, term), element('dd', {}, ...value)];
}

/** Facts under each other. */
export function factList(...facts: readonly HTMLElement[][]): HTMLDListElement {
  return element('dl', { class: 'facts' }, ...facts.flat());
}

/** Of controls whose text is no prose. */
export const VERBATIM = { autocomplete: 'off', autocapitalize: 'off', autocorrect: 'off', spellcheck: 'false' };

const SVG = 'http://www.w3.org/2000/svg';

/** A mark of 24 × 24 drawn with one stroke, for the eye only. */
export function icon(path: string): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('aria-hidden', 'true');
  const stroke = document.createElementNS(SVG, 'path');
  stroke.setAttribute('d', path);
  svg.append(stroke);
  return svg;
}

/** A live region speaks when it changes: setting the same text again would make it repeat itself. */
export function say(region: Element, text: string): void {
  if (region.textContent !== text) region.textContent = text;
}

let made = 0;

/** An id for an element that another one refers to. */
export function newId(): string {
  made += 1;
  return `e${made}`;
}

/** A button that copies a text, or selects it where a page may not write to the clipboard (plain HTTP). */
export function copyButton(what: string, source: HTMLElement): HTMLButtonElement {
  const label = element('span', { 'aria-live': 'polite' }, 'Copy');
  const button = element('button', { type: 'button', class: 'quiet', 'aria-label': `Copy ${what}` }, label);
  button.addEventListener('click', async () => {
    const done = await copied(source);
    label.textContent = done ? 'Copied' : 'Selected';
    setTimeout(() => {
      label.textContent = 'Copy';
    }, 1500);
  });
  return button;
}

async function copied(source: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(source.textContent ?? '');
    return true;
  } catch {
    getSelection()?.selectAllChildren(source);
    return false;
  }
}
