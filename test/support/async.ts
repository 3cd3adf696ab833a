import assert from 'node:assert/strict';
import type { RunningService } from './service.ts';
import { eventually } from './wait.ts';

/** What an async submission answers. */
export interface Submitted {
  readonly requestId: string;
  readonly status: string;
  readonly pollUrl: string;
}

/** The body of a 202. */
export async function submitted(response: Response): Promise<Submitted> {
  const text = await response.text();
  assert.equal(response.status, 202, text);
  return JSON.parse(text);
}

/** Polls until the request is complete or failed; the record as it was sent. */
export async function finished(
  service: Pick<RunningService, 'url'>,
  { pollUrl }: Pick<Submitted, 'pollUrl'>,
): Promise<Readonly<Record<string, unknown>>> {
  let text = '';
  const look = async () => {
    const response = await fetch(service.url + pollUrl);
    text = await response.text();
    assert.equal(response.status, 200, text);
    const record: Readonly<Record<string, unknown>> = JSON.parse(text);
    return (record.status === 'complete' || record.status === 'failed') && record;
  };
  return eventually(look, () => `its end: ${text}`);
}
