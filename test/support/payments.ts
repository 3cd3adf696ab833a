import assert from 'node:assert/strict';

/** What a command printed, a table for each payment, without the time. */
export function tableOf(stdout: string): Record<string, string>[] {
  const blocks = stdout.split('\n\n').filter((text) => / {2}/.test(text));
  return blocks.map((block) => {
    const rows = block
      .trim()
      .split('\n')
      .map((line) => /^(\S+) +(.*)$/.exec(line)?.slice(1) ?? []);
    const { since = '', ...rest } = Object.fromEntries(rows) as Record<string, string>;
    assert.match(since, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    return rest;
  });
}
