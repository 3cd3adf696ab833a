import { IsDateTime } from 'typebox/format';
import { parseExact } from '../lib/json/numbers.ts';
import { apiPath, type EndpointDraft, error, type Finding, keys } from '../plugins-sdk/config.ts';
import {
  type ApiResponse,
  definePlugin,
  type Endpoint,
  type OutgoingRequest,
  perEndpoint,
  Refusal,
} from '../plugins-sdk/index.ts';
import type { DescribedOperation } from '../plugins-sdk/openapi.ts';
import { expectKey, type Fresh } from './shared/expect-key.ts';
import { type CompiledPath, PathError } from './shared/json-path/index.ts';
import { operatorPaths } from './shared/json-path/operator-paths.ts';
import { Placeholders } from './shared/json-path/placeholders.ts';
import { parameterSchema } from './shared/parameter-schema.ts';
import { type Configured, declaredNames } from './shared/path-parameters.ts';
import { failed } from './shared/upstream.ts';

/** Checks an answer. @throws Refusal for an unexpected one; its reason names the place and the rule, never the value. */
type Expectation = (answer: ApiResponse, request: OutgoingRequest) => void;

type Class = 'unexpected' | 'requester';

function unexpected(detail: string, { status }: ApiResponse, failureClass: Class = 'unexpected'): Refusal {
  return failed(`unexpected answer: ${detail}`, failureClass, { upstreamStatus: status });
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** Returns a time in epoch milliseconds; NaN if the value is no time. */
function timeOf(value: unknown, unit: Fresh['unit'] = 's'): number {
  const text = typeof value === 'string' ? value : '';
  if (unit === 'iso') return timeOfText(text.toUpperCase().replace(' ', 'T'));
  const isNumber = typeof value === 'number' || DECIMAL.test(text);
  return isNumber ? Number(value) * (unit === 's' ? 1000 : 1) : Number.NaN;
}

/** Reads RFC 3339. A leap second (`:60`), which `Date` does not know, counts as the second before. */
function timeOfText(text: string): number {
  return IsDateTime(text) ? Date.parse(text.replace(/:60(?=[-+.Z])/, ':59')) : Number.NaN;
}

function missing(path: string): string {
  return `No value found at path: ${path}`;
}

/** Compiles the one path that a text holds. @throws PathError */
function pathTo(text: string, endpoint: Configured): CompiledPath {
  const [path, ...others] = operatorPaths(text, declaredNames(endpoint));
  if (path === undefined || others.length > 0) throw new PathError('lists several paths: write that of one time');
  return path;
}

/** Classifies a missing time: where clients choose the path, it says no more about the upstream than a 404. */
function classOfMissing(endpoint: Configured, path: string): Class {
  const declared = keys.parameters.of(endpoint) ?? [];
  const free = declared.flatMap(({ name, fixed }) => (fixed === undefined ? [name] : []));
  const placeholders = new Placeholders();
  placeholders.mark(path, free);
  return placeholders.names.length === 0 ? 'unexpected' : 'requester';
}

function freshness(endpoint: Endpoint, { path, maxAge, unit }: Fresh, now: () => number): Expectation {
  const { first } = pathTo(path, endpoint);
  const failureClass = classOfMissing(endpoint, path);
  return (answer, { pathValues }) => {
    try {
      const found = first(answer.data, undefined, pathValues);
      const { status: upstreamStatus } = answer;
      if (found === undefined)
        throw new Refusal(502, missing(path), { failureClass, upstreamStatus, fault: failureClass === 'unexpected' });
      const age = now() - timeOf(found.value, unit);
      if (Number.isNaN(age)) throw unexpected(`${path} is no time in ${unit ?? 's'}`, answer);
      if (age > maxAge) throw unexpected(`${path} is more than ${maxAge} ms ago`, answer);
      if (age < -maxAge) throw unexpected(`${path} is more than ${maxAge} ms ahead`, answer);
    } catch (cause) {
      throw cause instanceof PathError ? unexpected(`${path} ${cause.message}`, answer, failureClass) : cause;
    }
  };
}

/** Returns the expectation of an endpoint; undefined if any answer will do. */
function expectationOf(endpoint: Endpoint, now: () => number): Expectation | undefined {
  const { schema, fresh } = expectKey.of(endpoint) ?? {};
  if (schema === undefined && fresh === undefined) return undefined;
  const misfit = schema && parameterSchema({ schema }, '').misfit;
  const checkFresh = fresh && freshness(endpoint, fresh, now);
  return (answer, request) => {
    const why = misfit?.(parseExact(answer.text ?? '') ?? answer.data);
    if (why !== undefined) throw unexpected(why, answer);
    checkFresh?.(answer, request);
  };
}

/** Checks `expect`. A finding has the path of the API if the API sets the key, and so is reported once for all endpoints. */
function check(endpoint: EndpointDraft): Finding[] {
  const { schema, fresh } = expectKey.of(endpoint) ?? {};
  const at = `${endpoint.block.expect === undefined ? apiPath(endpoint) : endpoint.path}.expect`;
  return [
    ...(schema === undefined ? [] : parameterSchema({ schema }, `${at}.schema`).findings),
    ...(fresh === undefined ? [] : checkPath(endpoint, fresh, `${at}.fresh.path`)),
  ];
}

function checkPath(endpoint: EndpointDraft, { path }: Fresh, at: string): Finding[] {
  try {
    pathTo(path, endpoint);
    return [];
  } catch (cause) {
    if (!(cause instanceof PathError)) throw cause;
    const isShare = /\/\s*1000\s*$/.test(path);
    return [error(at, isShare ? 'a path cannot calculate: for a time in milliseconds set unit: ms' : cause.message)];
  }
}

function describe(endpoint: Endpoint): DescribedOperation {
  const { fresh } = expectKey.of(endpoint) ?? {};
  return fresh === undefined ? {} : { failures: { 502: { errors: [missing(fresh.path)] } } };
}

/** Refuses unexpected upstream answers. Retries, mirrors and breakers see the refusal, and no such answer is kept. */
export const expect = definePlugin({
  name: 'expect',
  budget: 'none',
  keys: [expectKey],
  check: ({ endpoints }) => endpoints.flatMap(check),
  openapi: () => ({ operation: describe }),
  setup({ endpoints, now }) {
    const expectationFor = perEndpoint(endpoints, (endpoint) => expectationOf(endpoint, now));
    if (endpoints.every((endpoint) => expectationFor(endpoint) === undefined)) return {};
    return {
      hooks: {
        callApi: async (request, { endpoint }, { next }) => {
          const check = expectationFor(endpoint);
          if (check === undefined) return undefined;
          const answer = await next();
          check(answer, request);
          return answer;
        },
      },
    };
  },
});
