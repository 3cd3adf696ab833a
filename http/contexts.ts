import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type Koa from 'koa';

const require = createRequire(import.meta.url);

let app: Koa | undefined;

/** Loads what makes contexts: it takes an eighth of the start, and few requests need one. */
export function loadContexts(): Koa {
  if (app === undefined) {
    const Application: typeof Koa = require('koa');
    app = new Application();
  }
  return app;
}

/** Koa's view of a request, as its middleware wants it. */
export function contextOf(request: IncomingMessage, response: ServerResponse): Koa.Context {
  return loadContexts().createContext(request, response);
}
