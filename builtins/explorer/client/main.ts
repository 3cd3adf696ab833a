/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import type { PageData } from '../data.ts';
import type { PublicEndpoint } from '../endpoint.ts';
import { serviceUrl } from './call.ts';
import { endpointCard } from './card.ts';
import { element, fact, factList, say } from './dom.ts';
import { Keys } from './keys.ts';
import { endpointPanel } from './panel.ts';
import { Pin } from './pin.ts';

/** From this many endpoints on a person would rather search than read. */
const MANY = 8;
const TITLE = 'Signed data explorer';

function readData(): PageData {
  const data: PageData = JSON.parse(document.getElementById('data')?.textContent ?? '');
  return data;
}

interface Listed {
  readonly endpoint: PublicEndpoint;
  readonly link: HTMLAnchorElement;
  readonly item: HTMLElement;
  readonly card: HTMLElement;
}

function listed(endpoint: PublicEndpoint, card: HTMLElement): Listed {
  const { id, name, mode, description = '' } = endpoint;
  const tag = mode === 'sync' ? [] : [element('span', { class: 'tag' }, mode)];
  const link = element(
    'a',
    { class: 'link', href: `#${id}` },
    element('span', { class: 'name' }, element('span', { class: 'label' }, name), ...tag),
    ...(description === '' ? [] : [element('span', { class: 'about' }, description)]),
  );
  return { endpoint, link, card, item: element('li', {}, link) };
}

function navigation(all: readonly Listed[]): HTMLElement {
  const apis = [...new Set(all.map(({ endpoint }) => endpoint.api))];
  const groups = apis.map((api) => {
    const members = all.filter(({ endpoint }) => endpoint.api === api);
    const group = element(
      'section',
      { class: 'group' },
      element('h2', { class: 'api' }, api),
      element('ul', {}, ...members.map(({ item }) => item)),
    );
    return { group, members };
  });
  const found = element('p', { class: 'hint', role: 'status' });
  const filter = element('input', {
    type: 'search',
    placeholder: 'Filter endpoints',
    'aria-label': 'Filter endpoints',
    spellcheck: 'false',
  });
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const { group, members } of groups) {
      for (const { endpoint, item, card } of members) {
        const { id, api, name, description = '' } = endpoint;
        const text = `${api}/${name} ${description} ${id}`.toLowerCase();
        item.hidden = !words.every((word) => text.includes(word));
        card.hidden = item.hidden;
        if (!item.hidden) count += 1;
      }
      group.hidden = members.every(({ item }) => item.hidden);
    }
    say(found, filter.value.trim() === '' ? '' : count === 0 ? 'No endpoint matches' : `${count} of ${all.length}`);
  });
  const search = all.length < MANY ? [] : [element('div', { class: 'filter' }, filter, found)];
  return element('nav', { 'aria-label': 'Endpoints' }, ...search, ...groups.map(({ group }) => group));
}

function welcome({ node, openapi, title, description }: PageData, cards: readonly HTMLElement[]): HTMLElement {
  return element(
    'article',
    { class: 'welcome' },
    element('h1', { tabindex: '-1' }, title ?? 'Ask, and see who signed'),
    ...(description === undefined ? [] : [element('p', { class: 'lead said' }, description)]),
    element(
      'p',
      { class: 'lead' },
      'Every answer of this service is signed. Choose an endpoint, send a request, and this page recovers the signer from the answer, in your browser, and compares it with the address that you pin.',
    ),
    factList(fact('This service says it signs as', element('code', {}, node))),
    ...(openapi
      ? [element('p', {}, 'For programs, the endpoints are described in ', openApiLink(), ' (OpenAPI 3.1).')]
      : []),
    element(
      'p',
      { class: 'hint' },
      'A page cannot vouch for itself. Before you rely on a signer, get its address elsewhere: from the operator, or from the TXT record at _node.<domain of the API>.',
    ),
    element('div', { class: 'cards' }, ...cards),
  );
}

function openApiLink(): HTMLElement {
  return element('a', { href: serviceUrl('openapi.json').href }, 'openapi.json');
}

function lost(id: string): HTMLElement {
  return element(
    'article',
    {},
    element('a', { class: 'back', href: '#' }, '← All endpoints'),
    element('h1', { tabindex: '-1' }, 'No such endpoint'),
    element(
      'p',
      { class: 'lead' },
      'This service has no endpoint of this ID. An ID changes whenever the specification of its endpoint does.',
    ),
    element('p', {}, element('code', {}, id)),
  );
}

function run(): void {
  const data = readData();
  const { node, endpoints } = data;
  const pin = new Pin(node);
  const keys = new Keys();
  const all = endpoints.map((endpoint) => listed(endpoint, endpointCard(endpoint, pin, data)));
  const main = element('main');
  const start = welcome(
    data,
    all.map(({ card }) => card),
  );
  const panels = new Map<string, HTMLElement>();
  const panelOf = (endpoint: PublicEndpoint) => {
    const panel = panels.get(endpoint.id) ?? endpointPanel(endpoint, pin, keys, data);
    panels.set(endpoint.id, panel);
    return panel;
  };
  const show = () => {
    const id = location.hash.slice(1).toLowerCase();
    const chosen = endpoints.find((endpoint) => endpoint.id.toLowerCase() === id);
    for (const { endpoint, link } of all) {
      if (endpoint === chosen) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    document.body.classList.toggle('chosen', id !== '');
    document.title = chosen === undefined ? TITLE : `${chosen.api}/${chosen.name} · ${TITLE}`;
    main.replaceChildren(id === '' ? start : chosen === undefined ? lost(id) : panelOf(chosen));
  };
  document.body.append(
    element('header', {}, element('div', {}, element('a', { class: 'brand', href: '#' }, TITLE))),
    element('div', { class: 'layout' }, navigation(all), main),
  );
  addEventListener('hashchange', () => {
    show();
    scrollTo(0, 0);
    main.querySelector('h1')?.focus();
  });
  show();
}

run();
