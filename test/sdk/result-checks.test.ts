/** A wrong result is named, with what it must be. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WrongShape } from '../../kernel/stages.ts';
import { readersFor } from '../../plugins-sdk/results/contracts.ts';

const readers = readersFor({ signers: [], now: Date.now, endpoints: new Set() });

type Reader = keyof typeof readers;

/** What the inner function was given, where it counts: headers stand beside those of the plugins before. */
const given: Partial<Record<Reader, readonly unknown[]>> = { headers: [{}] };

/** What reading the value says, or nothing where it is taken. */
function complaintOf(reader: Reader, value: unknown): string | undefined {
  try {
    readers[reader](value, given[reader] ?? [], 'p');
    return undefined;
  } catch (error) {
    assert.ok(error instanceof WrongShape, String(error));
    return error.message;
  }
}

const shape = (detail: string) => `returned something of the wrong shape: ${detail}`;
const meant = (name: string, near: string) => `returned a member "${name}", did you mean "${near}"?`;

const cycle: unknown[] = [];
cycle.push(cycle);

const endpoint = { id: '0x01', api: 'a', name: 'b', mode: 'sync', auth: [], block: {}, apiBlock: {} };
const reply = { status: 200, body: '{}' };
const encoded = { bytes: '0x01', field: 'data', value: 1 };
const signed = { node: '0x01', signature: '0x02' };

const cases: Readonly<Record<string, readonly (readonly [unknown, string])[]>> = {
  allowed: [false, null, 1, {}].map((value) => [value, shape('it must be true or undefined')] as const),
  endpoint: [null, endpoint].map(
    (value) => [value, shape('it must be one of services.endpoints, and no copy of one')] as const,
  ),
  parameters: [null, 'a', [1]].map((value) => [value, shape('it must be an object of parameters')] as const),
  httpResponse: [
    ['text', shape('it must be an object {status, headers, body}')],
    [{ ...reply, status: 199 }, shape('status must be an integer from 200 to 599')],
    [{ ...reply, status: '200' }, shape('status must be an integer from 200 to 599')],
    [{ ...reply, headers: 'a: b' }, shape('headers must be an object of texts')],
    [{ ...reply, headers: { 'x-key': 5 } }, shape('the header "x-key" must be a text')],
    [{ ...reply, headers: { 'x-key': 'secret\n' } }, shape('the header "x-key" cannot be sent')],
    [{ ...reply, body: 'secret' }, shape('the body is no JSON')],
    [{ ...reply, header: {} }, meant('header', 'headers')],
    [{ Status: 200, body: '' }, meant('Status', 'status')],
  ],
  headers: [
    [['a'], shape('headers must be an object of texts')],
    [{ 'x-key': null }, shape('the header "x-key" must be a text')],
  ],
  signedResponse: [
    ['{}', shape('it must be an object {json}')],
    [{ json: {} }, shape('json must be a text')],
    [{ jsom: '{}' }, meant('jsom', 'json')],
  ],
  encoded: [
    ['0x01', shape('it must be an object {bytes, field, value}')],
    [{ ...encoded, bytes: '01' }, shape('bytes must be 0x hex')],
    [{ ...encoded, bytes: undefined }, shape('bytes must be 0x hex')],
    [{ ...encoded, field: 3 }, shape('field must be a text that is not empty')],
    [{ ...encoded, field: '' }, shape('field must be a text that is not empty')],
    ...'node endpointId timestamp signature proof receipt signatures requestId status done __proto__'
      .split(' ')
      .map((field) => [{ ...encoded, field }, shape(`the field ${field} has another meaning`)] as const),
    [{ ...encoded, value: undefined }, shape('value must be JSON')],
    [{ ...encoded, value: 1n }, shape('value must be JSON')],
    [{ ...encoded, value: cycle }, shape('value must be JSON')],
    [{ ...encoded, value: NaN }, shape('the value holds a number that JSON cannot carry')],
    [{ byte: '0x01', field: 'data', value: 1 }, meant('byte', 'bytes')],
  ],
  response: [
    [null, shape('it must be an object {status, data, text, request}')],
    [{ data: 1 }, shape('status must be an integer')],
    [{ status: 200.5, data: 1 }, shape('status must be an integer')],
    [{ status: 200 }, shape('data must be JSON')],
    [{ status: 200, data: 1, text: 1 }, shape('text must be a text')],
    [{ stauts: 200, data: 1 }, meant('stauts', 'status')],
  ],
  data: ['01', '0x', '0x0', {}].map((value) => [value, shape('it must be 0x hex')] as const),
  signed: [
    [undefined, shape('it must be an object {node, signature, statements, extra}')],
    [{ ...signed, node: '01' }, shape('node must be 0x hex')],
    [{ ...signed, node: '0x' }, shape('node must be 0x hex')],
    [{ ...signed, signature: '0x' }, shape('signature must be 0x hex')],
    [{ ...signed, extra: [] }, shape('extra must be an object of JSON')],
    [{ ...signed, extra: { cycle } }, shape('extra must be an object of JSON')],
    [{ ...signed, extras: {} }, meant('extras', 'extra')],
  ],
  proof: [
    ['proof', shape('it must be an object of JSON')],
    [{ cycle }, shape('it must be an object of JSON')],
  ],
};

it('frozen headers are read again while an accessor of theirs may say something else', () => {
  let count = 0;
  const changing = Object.freeze({
    get 'x-count'() {
      count += 1;
      return String(count);
    },
  });
  const read = () => readers.headers(changing, [{}], 'p');
  assert.deepEqual([read(), read()], [{ 'x-count': '1' }, { 'x-count': '2' }]);
});

describe('what an inner function returns wrongly is named, and what it must be', () => {
  for (const [reader, values] of Object.entries(cases)) {
    it(reader, () => {
      for (const [value, message] of values) assert.equal(complaintOf(reader as Reader, value), message);
    });
  }

  it('not where a member that has nothing to do with them stands beside all that can be there', () => {
    assert.equal(complaintOf('encoded', { ...encoded, byte: 1 }), undefined);
    assert.equal(complaintOf('response', { status: 200, data: 1, date: 'today', headers: {} }), undefined);
    assert.equal(complaintOf('httpResponse', { ...reply, json: true }), undefined);
  });
});
