import { after, describe } from 'node:test';

/**
 * Runs test files in this process, one after the other, each as a suite of its name: what they load, the whole service,
 * is loaded once.
 */
export async function together(files) {
  for (const file of files)
    await new Promise((done) => {
      describe(file, async () => {
        try {
          await import(new URL(`../../${file}`, import.meta.url).href);
        } catch (error) {
          done();
          throw error;
        }
        // After what the file itself does at its end.
        after(done);
      });
    });
}
