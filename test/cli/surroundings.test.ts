/** Relative paths are relative to where the user stands. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { userDirectory } from '../../service/surroundings.ts';
import { PACKAGE_ROOT } from './run.ts';

describe('the directory that relative paths are relative to', () => {
  it('is where the user stood, when npm runs a script of this package', () => {
    for (const script of ['start', 'cli'])
      assert.equal(userDirectory({ INIT_CWD: '/home/op', npm_lifecycle_event: script }, PACKAGE_ROOT), '/home/op');
  });

  it('is the working directory otherwise', () => {
    assert.equal(userDirectory({}, '/srv'), '/srv');
    assert.equal(userDirectory({ INIT_CWD: '/home/op', npm_lifecycle_event: 'start' }, '/srv'), '/srv');
    assert.equal(userDirectory({ INIT_CWD: '/home/op', npm_lifecycle_event: 'test' }, PACKAGE_ROOT), PACKAGE_ROOT);
    assert.equal(userDirectory({ INIT_CWD: '/home/op' }, PACKAGE_ROOT), PACKAGE_ROOT);
    assert.equal(userDirectory({ INIT_CWD: '', npm_lifecycle_event: 'start' }, PACKAGE_ROOT), PACKAGE_ROOT);
  });
});
