import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { CallOutcome } from './call.ts';
import { timeText } from './human.ts';
import type { Page } from './page.ts';
import { Copied, ELSEWHERE, fact, onText, Section, type Shown, useNewId, VERBATIM } from './parts.ts';
import type { Asked } from './request.ts';
import { useVerdict, type Verdict, valuesOf } from './verdict.ts';

/** Shows the result of a request, and its signer. */
export function AnswerPart({ endpoint, page }: Shown) {
  const sent = page.sentFor(endpoint.id);
  const { outcome, progress, text } = sent ?? {};
  const { problem, requestId } = outcome ?? {};
  const verdict = useVerdict(page, sent);
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (outcome !== undefined) place.current?.scrollIntoView({ block: 'nearest' });
  }, [outcome]);
  // A person may replace an error's text by a signed answer.
  const isUnsigned = problem !== undefined && text === outcome?.text;
  return html`<${Section} title="Answer" extra="answer">
    <p class="status" role="status">${progress ? `${progress}…` : statusText(outcome)}</p>
    ${requestId && html`<p class="request">Request <${Copied} what="the request ID" text=${requestId} /></p>`}
    <div ref=${place} aria-busy=${progress ? 'true' : 'false'}>
      ${problem && html`<p class="notice ${outcome?.status === 402 ? '' : 'bad'}" role="alert">${problem}</p>`}
      <p class="hint advice" role="status">${adviceOf(outcome)}</p>
      ${!isUnsigned && html`<${Check} verdict=${verdict} asked=${sent?.asked} page=${page} />`}
    </div>
    ${outcome?.text && html`<${AnswerField} endpoint=${endpoint} page=${page} given=${outcome.text} isUnsigned=${isUnsigned} />`}
  <//>`;
}

function statusText(outcome: CallOutcome | undefined): string {
  if (outcome === undefined) return '';
  const { status = '', statusText, milliseconds, isStale } = outcome;
  const age = isStale ? ': an older answer, since the upstream fails' : '';
  return `${`${status} ${statusText}`.trim()}, ${milliseconds} ms${age}`;
}

/** Returns advice for a fault that is not in the request. */
function adviceOf({ status = 0, requestId, problem }: Partial<CallOutcome> = {}): string {
  if (problem === undefined || requestId === undefined || (status >= 300 && status < 500)) return '';
  const who = status === 502 || status === 504 ? 'The service is up, but the API behind it failed. ' : '';
  const when = problem.includes('Try again') ? '' : 'Try again in a minute. ';
  return `${who}${when}If that does not help, send the operator the request ID above: the log says what failed.`;
}

const MARKS: Readonly<Record<Verdict['state'], string>> = {
  none: 'M6 12h12',
  good: 'm5 12.5 4.5 4.5L19 7',
  unpinned: 'M12 5v9M12 18.5v.01',
  bad: 'm6 6 12 12M18 6 6 18',
};

/** Shows the verdict and the signer. */
function Check({ verdict, asked, page }: { verdict: Verdict; asked: Asked | undefined; page: Page }) {
  const { state, headline, detail, signer = '—', isBadPin = false } = verdict;
  const id = useNewId();
  const pin = {
    ...{ ...VERBATIM, id, class: 'code', type: 'text', value: page.pin.address },
    ...{ 'aria-describedby': `${id}-problem ${id}-advice`, 'aria-invalid': String(isBadPin) },
    onInput: onText((text) => page.expect(text.trim())),
  };
  return html`<div class="check" data-state=${state}>
    <div class="verdict">
      <span class="mark"><svg viewBox="0 0 24 24" aria-hidden="true"><path d=${MARKS[state]} /></svg></span>
      <p role="status"><strong>${headline}</strong></p>
    </div>
    ${detail && html`<p class="detail">${detail}</p>`}
    <dl class="addresses">
      <dt>Recovered</dt>
      <dd class="recovered"><code>${signer}</code></dd>
      <dt><label for=${id}>Pinned</label></dt>
      <dd>
        <input ...${pin} />
        <p class="problem" id="${id}-problem" hidden=${!isBadPin}>
          This is no address: 0x and 40 hex digits, and the right checksum if there are capitals.
        </p>
      </dd>
    </dl>
    ${asked && html`<dl class="facts signed">${factsOf(verdict, asked)}</dl>`}
    <p class="hint" id="${id}-advice">${pinAdvice(page)}</p>
  </div>`;
}

function pinAdvice({ pin: { address, isOwnChoice }, data: { node } }: Page): string {
  if (!isOwnChoice)
    return `The service gave this address, and a page cannot vouch for itself. Paste the address that you got elsewhere: ${ELSEWHERE}.`;
  const isSame = address.toLowerCase() === node.toLowerCase();
  return `You pinned this address; the service gives ${isSame ? 'the same one' : 'another one'} for itself.`;
}

/** Returns the signed facts of a verified answer. */
function factsOf(verdict: Verdict, asked: Asked): (VNode | undefined)[] {
  const { verified } = verdict;
  if (verified === undefined) return [];
  const { timestamp, digest, requestHash } = verified;
  return [
    ...valuesOf(verdict, asked).map(({ name, human, exact }) =>
      fact(name, human && html`<strong>${human}</strong>`, html`<code>${exact}</code>`),
    ),
    fact('Signed', timeText(timestamp)),
    fact('Digest', html`<${Copied} what="the digest" text=${digest} />`),
    requestHash && fact('Request hash', html`<${Copied} what="the request hash" text=${requestHash} />`),
  ];
}

/** Shows the answer in a field that can be edited, so that a person sees what the signature protects. */
function AnswerField({ endpoint, page, given, isUnsigned }: Shown & { given: string; isUnsigned: boolean }) {
  const id = useNewId();
  const ref = useRef<HTMLTextAreaElement>(null);
  const value = page.sentFor(endpoint.id)?.text;
  const rows = Math.min(Math.max(given.split('\n').length + 2, 4), 24);
  const change = (text: string) => page.edit(endpoint.id, text);
  const undo = () => {
    change(given);
    ref.current?.focus();
  };
  const attributes = { ...VERBATIM, id, class: 'code', rows, value, ref, 'aria-describedby': `${id}-hint` };
  return html`<div class="field">
    <div class="caption">
      <label for=${id}>Response</label>
      ${value !== given && html`<button type="button" class="quiet" onClick=${undo}>Undo changes</button>`}
    </div>
    <textarea ...${attributes} onInput=${onText(change)} />
    <p class="hint" id="${id}-hint" hidden=${isUnsigned}>Change a byte, and see what the check says.</p>
  </div>`;
}
