/** The names that a plugin can import are a promise: none comes or goes unnoticed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as sdk from '../../plugins-sdk/index.ts';
import { sdkNames } from '../../tools/scripts/sdk-reference.ts';

const MOST = 60;

const VALUES = `
  addAnswerHeaders answerHeaders AskedQuestion clientAddress clientIp clientKey clientName configKey ContextKey
  createHttpClient definePlugin writtenParameters isHex isRefusal JsonText keep normalizeAddress perEndpoint perMethod
  rawBody Refusal RequestFailure SignedResponse takeParameters toBytes toHex tooManyRequests Type
  withoutRoundedNumbers
`;

const TYPES = `
  AfterApiCallContext ApiResponse AskedResponse AuthMethod BeforeApiCallContext BeforeSignContext Behaviour
  CallContext Definition Encoded Endpoint ErrorContext Exchange Hex HttpClient HttpRequestContext HttpResponse Json
  Log OutgoingRequest Parameters Question ResponseSentContext Route RouteRequest Run Services SimplePlugin StageFn
  Static Taps
`;

const LOST = 'authors who import these lose them; say in CHANGELOG.md what to write instead';
const GAINED = 'authors will rely on these from now on; give each a docstring and an example in docs/sdk.md';

const wordsOf = (text: string) => text.trim().split(/\s+/);

/** Fails with what the difference means for authors. */
function same(actual: readonly string[], promised: readonly string[]): void {
  const lost = promised.filter((name) => !actual.includes(name));
  assert.deepEqual(lost, [], `${LOST}: ${lost.join(', ')}`);
  const gained = actual.filter((name) => !promised.includes(name));
  assert.deepEqual(gained, [], `${GAINED}: ${gained.join(', ')}`);
}

describe('the surface of the SDK', () => {
  const values = Object.keys(sdk);
  const names = sdkNames(['index']).map(({ name }) => name);

  it('has these values', () => same(values, wordsOf(VALUES)));

  it('has these types', () =>
    same(
      names.filter((name) => !values.includes(name)),
      wordsOf(TYPES),
    ));

  it(`has at most ${MOST} names`, () =>
    assert.ok(names.length <= MOST, `${names.length} names: move some to another entry`));
});
