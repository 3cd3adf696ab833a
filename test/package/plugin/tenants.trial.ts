import assert from 'node:assert/strict';
import { it } from 'node:test';
import { testEndpoint, testPlugin } from 'signed-data-proxy-plugins-sdk/testing';
import tenants from './tenants.ts';

it('lets in who says a name', async () => {
  const method = { type: 'tenant' };
  const harness = await testPlugin(tenants, { services: { endpoints: [testEndpoint({ auth: [method] })] } });
  const outcome = (headers: Record<string, string>) =>
    harness.request({ headers }).run('authenticate', { variant: 'tenant', method });
  assert.deepEqual(await outcome({ 'X-Tenant': 'ada' }), { value: true });
  assert.deepEqual(await outcome({}), { refused: { status: 401, message: 'Which tenant?' } });
});
