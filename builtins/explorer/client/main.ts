/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { html, render } from 'htm/preact';
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { PageData, PublicEndpoint } from '../endpoint.ts';
import { Page } from './page.ts';
import { Panel } from './panel.ts';
import { onText } from './parts.ts';
import { Welcome } from './welcome.ts';

/** The number of endpoints from which on the page has a filter. */
const MANY = 8;
const FILTER = 'Filter endpoints';
const TITLE = 'Signed data explorer';

function chosenId(): string {
  return location.hash.slice(1).toLowerCase();
}

function chosenOf({ data }: Page): PublicEndpoint | undefined {
  return data.endpoints.find(({ id }) => id.toLowerCase() === chosenId());
}

function Explorer({ page }: { page: Page }) {
  const { endpoints } = page.data;
  const [filter, setFilter] = useState('');
  const words = filter.toLowerCase().split(/\s+/);
  const shown = endpoints.filter(({ id, api, name, description = '' }) => {
    const text = `${api}/${name} ${description} ${id}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const found = shown.length === 0 ? 'No endpoint matches' : `${shown.length} of ${endpoints.length}`;
  const control = { type: 'search', placeholder: FILTER, 'aria-label': FILTER, spellcheck: false };
  return html`<div class=${chosenId() && 'chosen'}>
    <header>
      <div><a class="brand" href="#">${TITLE}</a></div>
    </header>
    <div class="layout">
      <nav aria-label="Endpoints">
        ${
          endpoints.length >= MANY &&
          html`<div class="filter">
            <input ...${control} value=${filter} onInput=${onText(setFilter)} />
            <p class="hint" role="status">${filter.trim() && found}</p>
          </div>`
        }
        ${groupsOf(shown, chosenOf(page))}
      </nav>
      <main>${mainOf(page, shown)}</main>
    </div>
  </div>`;
}

function groupsOf(shown: readonly PublicEndpoint[], chosen: PublicEndpoint | undefined): VNode[] {
  const linkTo = (endpoint: PublicEndpoint) => html`<li>
    <a class="link" href="#${endpoint.id}" aria-current=${endpoint === chosen ? 'page' : undefined}>
      <span class="name">
        <span class="label">${endpoint.name}</span>
        ${endpoint.mode !== 'sync' && html`<span class="tag">${endpoint.mode}</span>`}
      </span>
      ${endpoint.description && html`<span class="about">${endpoint.description}</span>`}
    </a>
  </li>`;
  const apis = [...new Set(shown.map(({ api }) => api))];
  return apis.map(
    (api) => html`<section class="group">
      <h2 class="api">${api}</h2>
      <ul>${shown.filter((endpoint) => endpoint.api === api).map(linkTo)}</ul>
    </section>`,
  );
}

function mainOf(page: Page, shown: readonly PublicEndpoint[]): VNode {
  const chosen = chosenOf(page);
  if (chosen !== undefined) return html`<${Panel} key=${chosen.id} endpoint=${chosen} page=${page} />`;
  if (chosenId() === '') return html`<${Welcome} page=${page} shown=${shown} />`;
  return html`<article>
    <a class="back" href="#">← All endpoints</a>
    <h1 tabindex="-1">No such endpoint</h1>
    <p class="lead">This service has no endpoint of this ID. An ID changes whenever the specification of its endpoint does.</p>
    <p><code>${location.hash.slice(1)}</code></p>
  </article>`;
}

function draw(page: Page): void {
  const root = document.getElementById('page');
  if (root === null) throw new Error('the page has no place to be drawn');
  const chosen = chosenOf(page);
  document.title = chosen === undefined ? TITLE : `${chosen.api}/${chosen.name} · ${TITLE}`;
  render(html`<${Explorer} page=${page} />`, root);
}

const data: PageData = JSON.parse(document.getElementById('data')?.textContent ?? '');
const page = new Page(data, draw);
addEventListener('hashchange', () => {
  draw(page);
  scrollTo(0, 0);
  document.querySelector('h1')?.focus();
});
draw(page);
