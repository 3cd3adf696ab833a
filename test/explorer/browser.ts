import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { endsWith, type Lifetime } from '../support/lifetime.ts';

const { CHROMIUM, CI } = process.env;
const USUAL_PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = [...(CHROMIUM ? [CHROMIUM] : []), ...USUAL_PLACES].find((file) => existsSync(file));
const MISSING = 'no browser: install chromium (Debian: apt-get install chromium), or name one in CHROMIUM';

/** Why the tests are left out; where everything must be tested, a missing browser is a failure instead. */
export const skip = executablePath === undefined && !CI ? MISSING : false;

const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--disable-quic',
];

export async function launch(): Promise<Browser> {
  assert.ok(executablePath, MISSING);
  return chromium.launch({ executablePath, args });
}

export const browserFor = (lifetime: Lifetime): Promise<Browser> => endsWith(lifetime, launch());

/** What a visitor's page must not do. */
export interface Visit {
  readonly page: Page;
  /** Asserts that nothing was asked of another origin, nothing was complained of, and no dialog was opened. */
  assertClean(): void;
}

/** A new page of a visitor who has never been here. */
export async function visit(browser: Browser, origin: string): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const requested: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requested.push(request.url()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => {
    // The browser reports every answer of 400 and above.
    if (!message.text().startsWith('Failed to load resource')) complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('dialog', (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => undefined);
  });
  return {
    page,
    assertClean: () => {
      const elsewhere = requested.filter(
        (url) => !url.startsWith(`${origin}/`) && !/^(?:data:|about:blank$)/.test(url),
      );
      assert.deepEqual({ elsewhere, complaints }, { elsewhere: [], complaints: [] });
    },
  };
}
