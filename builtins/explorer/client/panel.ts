import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { PublicEndpoint, ReservedParameter } from '../endpoint.ts';
import { AnswerPart } from './answer.ts';
import { serviceUrl } from './call.ts';
import { curlOf, javascriptOf } from './code.ts';
import { withFactors } from './factor.ts';
import { type Field, fieldsOf } from './fields.ts';
import { Copied, FieldView, fact, Section, type Shown } from './parts.ts';
import { requestOf } from './request.ts';
import { accessOf, costOf } from './welcome.ts';

/** Shows an endpoint: its facts, a form and the answer. */
export function Panel({ endpoint, page }: Shown) {
  const { api, name, description } = endpoint;
  return html`<article>
    <a class="back" href="#">← All endpoints</a>
    <p class="eyebrow">${api}</p>
    <h1 tabindex="-1">${name}</h1>
    ${description && html`<p class="lead">${description}</p>`}
    <${About} endpoint=${endpoint} />
    <${Section} title="Request"><${RequestForm} endpoint=${endpoint} page=${page} /><//>
    <${AnswerPart} endpoint=${endpoint} page=${page} />
  </article>`;
}

function About({ endpoint }: Pick<Shown, 'endpoint'>) {
  const { id, mode, modeTitle, encoding, remarks = [] } = endpoint;
  const cost = costOf(endpoint);
  const answer = encoding === undefined ? 'the upstream’s JSON, its numbers as doubles, signed' : encodingOf(encoding);
  const hasFractions = encoding !== undefined && /int|\*/.test(encoding.type);
  return html`<dl class="facts about-endpoint">
    ${fact('Endpoint ID', html`<${Copied} what="the endpoint ID" text=${id} />`)}
    ${fact('Mode', modeTitle === undefined ? mode : `${mode}: ${modeTitle}`)} ${fact('Access', accessOf(endpoint))}
    ${cost && fact('Price', cost)}
    ${fact('Answer', answer, ...remarks.map((remark) => `; ${remark.replaceAll('`', '')}`))}
    ${hasFractions && fact('Fractions', fractionsOf(encoding))}
  </dl>`;
}

/** Says whether digits that an integer cannot hold are cut or refused. */
function fractionsOf({ exact }: NonNullable<PublicEndpoint['encoding']>): string {
  return exact === true ? 'refused, where an integer would lose digits' : 'cut, where an integer loses digits';
}

/** Shows the encoding. A part that the client chooses is shown by the name of its field. */
function encodingOf({ type, path, times, combine }: NonNullable<PublicEndpoint['encoding']>): VNode {
  const named = (value: string, name: ReservedParameter) => (value === '*' ? name : value);
  const factor = times === undefined ? undefined : named(times, '_times');
  const types = withFactors(named(type, '_type'), factor).join(', ');
  return html`<code>${types}</code>${combine === undefined ? ' at ' : `, the ${combine} of what is at `}<code>${named(path, '_path')}</code>, ABI-encoded, signed`;
}

function RequestForm({ endpoint, page }: Shown) {
  const fields = useMemo(() => fieldsOf(endpoint), [endpoint]);
  const sent = page.sentFor(endpoint.id);
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault();
    if (page.areRight(fields)) page.send(endpoint.id, requestOf(endpoint, fields, page.textOf));
    else event.currentTarget.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  };
  return html`<form novalidate autocomplete="off" onSubmit=${submit}>
    ${fields.every(({ isHeader }) => isHeader) && html`<p class="hint">This endpoint takes no parameters.</p>`}
    ${fields.map((field) => html`<${FieldView} key=${field.key} field=${field} page=${page} />`)}
    <div class="actions">
      <button type="submit" class="send">Send request</button>
      ${sent?.progress && html`<button type="button" class="quiet" onClick=${() => sent.controller.abort()}>Stop</button>`}
    </div>
    <${CodePart} endpoint=${endpoint} fields=${fields} page=${page} />
  </form>`;
}

/** Shows code for the form's current content. */
function CodePart({ endpoint, fields, page }: Shown & { readonly fields: readonly Field[] }) {
  const headers = fields.filter(({ isHeader }) => isHeader).map(({ name }) => name);
  const asked = requestOf(endpoint, fields, page.textOf);
  const url = serviceUrl(`endpoints/${endpoint.id}`).href;
  const code = { endpoint, asked, headers, url, node: page.pin.address };
  const part = (title: string, text: string) => html`<details>
    <summary>${title}</summary>
    <${Copied} what="the code" text=${text} isBlock />
  </details>`;
  return html`<div class="command">
    ${part('As a curl command', curlOf(code))}
    ${part('In JavaScript, with the check of the signature', javascriptOf(code))}
  </div>`;
}
