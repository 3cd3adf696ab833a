import Router from '@koa/router';
import type { Middleware } from 'koa';
import { errorForLog, Refusal } from '../kernel/refusal.ts';
import { type Registration, RegistrationError, type Route } from '../kernel/registry.ts';

/** The path of endpoints, which the pipeline serves: it is no plugin's route. */
export const ENDPOINTS = '/endpoints/:endpointId';
/** The pattern of any path (`*`) in the router's syntax. */
const ANYWHERE = '{*path}';

/** The route in logs of a request that no route serves. */
export const NO_ROUTE = '(no route)';

/** Returns the same text for routes whose patterns differ only in the names of their parameters. */
const claimOf = (method: string, path: string) => `${method.toUpperCase()} ${path.replace(/:\w+/g, ':')}`;

/**
 * Makes the router of all routes: first the endpoints, then plugins' routes, and last those of any path (`*`).
 *
 * @param endpoints the middleware of the endpoints.
 * @param serve makes the middleware of a plugin's route.
 * @throws RegistrationError for a route that cannot be served, naming its plugin.
 */
export function routerOf(
  plugins: readonly Pick<Registration, 'name' | 'plugin'>[],
  endpoints: Middleware,
  serve: (route: Route) => Middleware,
): Router {
  const router = new Router({ strict: true, sensitive: true });
  const owners = new Map([
    ['POST /endpoints/:', 'kernel'],
    ['POST *', 'kernel'],
  ]);
  router.post(ENDPOINTS, endpoints);
  // The router tries routes in the order of registration.
  const contributed = plugins
    .flatMap(({ name, plugin }) => (plugin.routes ?? []).map((route) => ({ name, route })))
    .toSorted((a, b) => Number(a.route.path === '*') - Number(b.route.path === '*'));
  for (const { name, route } of contributed) {
    const { method, path } = route;
    const claim = claimOf(method, path);
    const owner = owners.get(claim);
    if (owner !== undefined)
      throw new RegistrationError(`plugins "${owner}" and "${name}" both serve ${method} ${path}`);
    owners.set(claim, name);
    try {
      router.register(path === '*' ? ANYWHERE : path, [method.toLowerCase()], serve(route));
    } catch (error) {
      throw new RegistrationError(`plugin "${name}": route ${method} ${path}: ${errorForLog(error, 'message')}`);
    }
  }
  return router;
}

/** Returns the refusal of a request that no route serves (404 or 405), and the route to log. */
export function unrouted(matched: Router['stack'] = []): [route: string, refusal: Refusal] {
  const found = matched.filter(({ path }) => path !== ANYWHERE);
  const [first] = found;
  if (first === undefined) return [NO_ROUTE, new Refusal(404, 'Not Found')];
  const allow = [...new Set(found.flatMap(({ methods }) => methods))].join(', ');
  return [String(first.path), new Refusal(405, 'Method Not Allowed', { headers: { Allow: allow } })];
}
