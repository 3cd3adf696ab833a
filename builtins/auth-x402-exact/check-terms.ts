/** Checks of the terms that their schema cannot express. */
import {
  type CheckContext,
  checkAddress,
  checkPlainHttp,
  type EndpointDraft,
  error,
  type Finding,
  warning,
} from '../../plugins-sdk/config.ts';
import { checkHeader } from '../shared/api-headers.ts';
import { authObjects, checkAmount, checkPayee, isZeroAddress } from '../shared/auth-objects.ts';
import { callTimeoutOf } from '../shared/upstream.ts';
import { cdpKey } from './cdp.ts';
import { chainsOf, dollarsOf, domainOf, statedDollars } from './dollars.ts';
import { LONGEST_REQUIRED, type Offer, offerOf, requiredHeader, requirementsOf } from './offer.ts';
import { type Accept, facilitatorsIn, type Terms, TermsSchema, TYPE } from './terms.ts';

/** Checks a URL to which paths are appended. */
function* checkUrl(path: string, text: string): Iterable<Finding> {
  const isBase = URL.canParse(text) && !/[?#]|\/\/[^/]*@/.test(text);
  if (!isBase) yield error(path, 'must be a URL without user name, password, query and fragment');
}

function* checkFacilitators(at: string, terms: Terms): Iterable<Finding> {
  const given = [terms.facilitator].flat();
  for (const [index, { url, headers = {}, auth }] of facilitatorsIn(terms).entries()) {
    const place = Array.isArray(terms.facilitator) ? `${at}[${index}]` : at;
    const urlAt = typeof given[index] === 'string' ? place : `${place}.url`;
    const own = auth === undefined ? /^content-type$/i : /^(?:content-type|authorization)$/i;
    yield* checkUrl(urlAt, url);
    yield* checkPlainHttp(urlAt, url, 'say that a payment is good, or read what is sent');
    if (auth !== undefined) yield* checkSecret(`${place}.auth.keySecret`, auth.keySecret);
    for (const [name, value] of Object.entries(headers)) {
      const path = `${place}.headers.${name}`;
      if (own.test(name)) yield error(path, `the header ${name} cannot be configured`);
      yield* checkHeader(path, name, value);
    }
  }
}

function* checkSecret(at: string, secret: string): Iterable<Finding> {
  try {
    cdpKey(secret);
  } catch {
    const kinds = 'base64 of 64 bytes (Ed25519), or a PEM of an EC key on P-256 with its line breaks';
    yield error(at, `is no secret of a CDP key: ${kinds}`);
  }
}

/** Checks a stated price against the tokens that are worth a dollar: clients decide by it. */
function* checkPrice(at: string, terms: Terms): Iterable<Finding> {
  const stated = statedDollars(terms);
  const [message] = terms.accepts.flatMap(({ amount, ...token }) => {
    if (typeof amount !== 'string') return ['is of a fixed amount, and a plugin says the amount: leave it out'];
    const dollars = dollarsOf({ ...token, amount }) ?? stated;
    return dollars === stated ? [] : `is not what is accepted: ${amount} of ${token.asset} are ${dollars} USD`;
  });
  if (stated !== undefined && message !== undefined) yield error(at, message);
}

/** Warns if a known token has another EIP-712 domain, or is on another chain: no payment would verify. */
function* checkToken(at: string, { network, asset, extra }: Accept): Iterable<Finding> {
  const domain = domainOf({ network, asset });
  const chains = chainsOf(asset);
  if (domain === undefined && chains.length > 0)
    yield warning(`${at}.asset`, `is known as a token on ${chains.join(', ')}, and not on ${network}`);
  if (domain !== undefined && domain !== `{ name: ${extra.name}, version: '${extra.version}' }`)
    yield warning(`${at}.extra`, `is not known as that of this token, and no payment verifies by another: ${domain}`);
}

const NATIVE = 'is the zero address: only tokens can be paid by authorisation';

function* checkAccept(at: string, accept: Accept, endpoint: EndpointDraft): Iterable<Finding> {
  const { asset, amount, payTo, maxTimeoutSeconds } = accept;
  const timeout = callTimeoutOf(endpoint);
  const most = requirementsOf(accept);
  const lateAt = maxTimeoutSeconds === undefined ? at : `${at}.maxTimeoutSeconds`;
  const late = `is not longer than the "timeout" of the API (${timeout} ms): a late answer finds its payment expired, and is not shown`;
  yield* checkAddress(`${at}.asset`, asset);
  if (isZeroAddress(asset)) yield error(`${at}.asset`, NATIVE);
  yield* checkToken(at, accept);
  yield* checkAmount(typeof amount === 'string' ? `${at}.amount` : `${at}.amount.max`, most.amount);
  yield* checkPayee(`${at}.payTo`, payTo, asset);
  if (most.maxTimeoutSeconds * 1000 <= timeout) yield warning(lateAt, late);
}

/** Most characters of an offer in the header: 200 are left free for the longest reason of a refusal. */
const LONGEST_OFFER = LONGEST_REQUIRED - 200;
const ANY_ID = `0x${'0'.repeat(64)}` as const;

function* checkLength(at: string, { accepts, ...offer }: Offer): Iterable<Finding> {
  const lengths = accepts.map((_, i) => requiredHeader({ ...offer, accepts: accepts.slice(0, i + 1) }).length);
  const fit = lengths.filter((length) => length <= LONGEST_OFFER).length;
  const said = `only ${fit} of ${accepts.length} fit into the header of a challenge`;
  if (fit < accepts.length) yield error(at, `${said}: shorten them or leave some out`);
}

const NOT_LAST = 'is not the last method: who comes without credentials is not told what to pay; put it last';

/** Checks the terms of all endpoints. Endpoints share their API's terms, so a finding may come up several times. */
export function* checkAllTerms({ endpoints, config }: CheckContext): Iterable<Finding> {
  for (const endpoint of endpoints) {
    const methods = authObjects([endpoint], TYPE, TermsSchema);
    for (const { terms, at } of methods) {
      yield* checkFacilitators(`${at}.facilitator`, terms);
      if (terms.publicUrl !== undefined) yield* checkUrl(`${at}.publicUrl`, terms.publicUrl);
      yield* checkPrice(`${at}.price`, terms);
      for (const [i, accept] of terms.accepts.entries()) yield* checkAccept(`${at}.accepts[${i}]`, accept, endpoint);
    }
    const [first] = methods;
    if (first === undefined) continue;
    yield* checkLength(`${first.at}.accepts`, offerOf({ ...endpoint, id: ANY_ID }, config));
    if (endpoint.auth.at(-1)?.type !== TYPE) yield warning(first.at, NOT_LAST);
  }
}
