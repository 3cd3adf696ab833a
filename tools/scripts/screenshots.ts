import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { launch } from '../../test/explorer/browser.ts';

/** Takes the explorer's pictures for the docs, from the demo in a real browser; `npm run screenshots`. */

const root = fileURLToPath(new URL('../..', import.meta.url));

const SIZES = { desktop: { width: 1120, height: 1260 }, phone: { width: 390, height: 1740 } };
const SCHEMES = ['light', 'dark'] as const;

/** A clone of the repository brings the pictures along. */
const MOST_BYTES = 600_000;

/** The demo's page, when a visitor has asked for the price; @returns the bytes of its picture. */
async function picture(browser: Browser, url: string, size: keyof typeof SIZES, colorScheme: 'light' | 'dark') {
  const context = await browser.newContext({ viewport: SIZES[size], colorScheme, locale: 'en-GB', timezoneId: 'UTC' });
  const page = await context.newPage();
  await page.goto(url);
  await page
    .getByRole('link', { name: /^encoded/ })
    .first()
    .click();
  await page.getByLabel('symbol').fill('ETHUSD');
  await page.keyboard.press('Enter');
  await page.getByText('Signed by the pinned address', { exact: true }).waitFor();
  await page.evaluate('scrollTo(0, 0); document.activeElement.blur()');
  const path = join(root, `docs/images/explorer-${size}-${colorScheme}.png`);
  const { length } = await page.screenshot({ path, animations: 'disabled' });
  await context.close();
  return length;
}

const demo = spawn(process.execPath, ['--import', 'tsx', 'cli/demo.ts'], {
  cwd: root,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  let said = '';
  let url: string | undefined;
  for await (const chunk of demo.stdout) {
    said += String(chunk);
    url = /in a browser: (http:\S+)\n/.exec(said)?.[1];
    if (url !== undefined) break;
  }
  if (url === undefined) throw new Error(`the demo ended before it named its page:\n${said}`);
  const browser = await launch();
  let bytes = 0;
  for (const scheme of SCHEMES) {
    bytes += await picture(browser, url, 'desktop', scheme);
    bytes += await picture(browser, url, 'phone', scheme);
  }
  await browser.close();
  if (bytes > MOST_BYTES) throw new Error(`the pictures have ${bytes} bytes, more than ${MOST_BYTES}`);
} finally {
  demo.kill('SIGINT');
}
