import type { Endpoint } from '../../kernel/values.ts';
import type { Taps } from '../../plugins-sdk/define.ts';
import {
  type ApiResponse,
  type Hex,
  type Json,
  JsonText,
  type OutgoingRequest,
  type Parameters,
} from '../../plugins-sdk/index.ts';
import { AskedQuestion } from '../../plugins-sdk/question.ts';
import { checked } from '../../plugins-sdk/signing/signed.ts';
import type { RecordedRequest } from './record.ts';

/** Nobody sends it. */
const REQUEST: OutgoingRequest = Object.freeze({
  ...{ method: 'GET', url: 'http://upstream.invalid/', body: undefined },
  headers: Object.freeze({}),
});

const NOBODY: Hex = `0x${'00'.repeat(20)}`;

/** What the stages of a service do for a recorded request, and what a plugin between them has made of it. */
export class StandIns {
  readonly given: ApiResponse;
  /** As `onBeforeApiCall` left them. */
  asked: Parameters | undefined;
  /** As `onAfterApiCall` left it. */
  answered: { readonly data: Json; readonly status: number } | undefined;
  /** Before and after `onBeforeSign`; absent for a raw answer. */
  encoded: Hex | undefined;
  signed: Hex | undefined;
  readonly hooks: Taps;

  /** @param own what the plugin has of its own, by stages with variants. */
  constructor({ response = { data: null }, data: bytes }: RecordedRequest, endpoint: Endpoint, own: Taps = {}) {
    const { data, status = 200 } = response;
    this.given = { data, status, text: JSON.stringify(data) };
    this.hooks = {
      resolve: () => endpoint,
      authenticate: Object.fromEntries(
        endpoint.auth.flatMap(({ type }) =>
          own.authenticate?.[type] === undefined ? [[type, () => true as const]] : [],
        ),
      ),
      prepare: (parameters) => this.#question(parameters),
      present:
        own.present?.[endpoint.mode] === undefined
          ? { [endpoint.mode]: async (run) => ({ status: 200, body: await run() }) }
          : {},
      callApi: (request) => ({ ...this.given, request }),
      onAfterApiCall: ({ response }) => {
        this.answered = { data: response.data, status: response.status };
      },
      encode: ({ data: shown }) => {
        if (bytes !== undefined) return { bytes, field: 'data', value: bytes };
        return { bytes: '0x', field: 'rawData', value: JsonText.stringify(shown) };
      },
      encrypt: (data) => {
        this.encoded = data;
      },
      sign: ({ data }) => {
        if (this.encoded !== undefined) this.signed = data;
        return checked({ node: NOBODY, signature: '0x00' });
      },
    };
  }
  /** Shows with which parameters it is asked at last. */
  #question(parameters: Parameters): AskedQuestion {
    this.asked = parameters;
    const requestFor = (changed: Parameters) => {
      this.asked = changed;
      return REQUEST;
    };
    const none = { reserved: {}, requestHash: undefined, key: () => 'k'.repeat(43) };
    return new AskedQuestion({ parameters, request: REQUEST, requestFor, ...none });
  }
}
