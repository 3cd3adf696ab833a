/** The names that a plugin can import are a promise: none comes or goes unnoticed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as sdk from '../../plugins-sdk/index.ts';
import { sdkNames } from '../../tools/scripts/sdk-reference.ts';

const MOST = 90;

const VALUES = `
  AskedQuestion BoundedTtlMap ContextKey HttpSignerSchema JsonText LONGEST_TIMER MemoryArea Refusal RequestFailure
  SignedResponse StateKey StateUnavailable Type addAnswerHeaders checkHttpSigners clientAddress clientIp clientKey clientName
  configKey configuredAddress configuredTarget createHttpClient dataDigest definePlugin httpTarget isHex isRefusal keccak256
  millisecondsSchema normalizeAddress normalizedSignature objectSchema perEndpoint perMethod randomId rawBody refTo
  requireAnswer signerType stateEngine steadyClock takeFrom toBytes toHex tooManyRequests withoutRoundedNumbers
`;

const TYPES = `
  Address AfterApiCallContext ApiResponse AskedResponse AuthMethod BeforeApiCallContext BeforeSignContext Behaviour CallContext
  CheckContext Definition Encoded Endpoint EndpointDraft ErrorContext Exchange Finding Hex HttpClient HttpRequestContext
  HttpResponse HttpSignerConfig Json Log OpenSigner OutgoingRequest Parameters Question ResponseSentContext Route RouteRequest
  Run Services SignRequest Signed SimplePlugin StageFn StateArea StateEngine Statement Static Taps Wanted
`;

const LOST =
  'authors who import these lose them; say in CHANGELOG.md, "What changes for plugins", what to write instead';
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
  const names = sdkNames().map(({ name }) => name);

  it('has these values', () => same(values, wordsOf(VALUES)));

  it('has these types', () =>
    same(
      names.filter((name) => !values.includes(name)),
      wordsOf(TYPES),
    ));

  it(`has at most ${MOST} names`, () =>
    assert.ok(names.length <= MOST, `${names.length} names: move some to a room of plugins-sdk/`));
});
