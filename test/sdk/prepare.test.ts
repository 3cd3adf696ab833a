/** What is prepared at start-up is there for every request, also where it is nothing. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { type Endpoint, perEndpoint } from '../../plugins-sdk/index.ts';

const endpointNamed = (name: string) => ({ name }) as Endpoint;

it('perEndpoint prepares once for each endpoint, undefined included, and knows no others', () => {
  const [limited, without] = [endpointNamed('with'), endpointNamed('without')];
  let count = 0;
  const prepared = perEndpoint([limited, without], ({ name }) => {
    count += 1;
    return name === 'with' ? { limit: 1 } : undefined;
  });
  assert.deepEqual([prepared(limited), prepared(without), prepared(limited)], [{ limit: 1 }, undefined, { limit: 1 }]);
  assert.equal(count, 2);
  assert.throws(() => prepared(endpointNamed('with')), /asked for something that was not prepared at start-up/);
});
