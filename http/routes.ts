import Router from '@koa/router';
import { Refusal } from '../kernel/refusal.ts';
import { RegistrationError, type Route, routeKey } from '../kernel/registry.ts';

/** What serves the requests of a path. */
export interface RouteTarget {
  /** The pattern of the path, as it stands in logs and metrics. */
  readonly route: string;
  /** Whether a request must be let in first, and may be shed; `asked`: it may be shed, and what it asks for is let in. */
  readonly admit: Route['admit'];
  /** Bytes of a body that are read before it is served. */
  readonly maxBody: number;
  /** The route of a plugin, by its key; why nobody serves it; or nothing for an endpoint. */
  readonly by?: string | Refusal;
}

/** What a request's method and path lead to. */
export interface Found {
  readonly target: RouteTarget;
  /** What the pattern of the route found in the path. */
  readonly params: Readonly<Record<string, string>>;
}

/** The path of endpoints, which are the kernel's own. */
export const ENDPOINTS: RouteTarget = { route: '/endpoints/:endpointId', admit: true, maxBody: 0 };

/** Which target serves a request. */
export class Routes {
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #targets = new Map<unknown, RouteTarget>();
  /** Routes of any path, by method. */
  readonly #anywhere = new Map<string, RouteTarget>();
  /** Who serves what; two routes whose patterns differ in the names of their parameters only are the same. */
  readonly #owners = new Map([
    ['POST /endpoints/:', 'kernel'],
    ['POST *', 'kernel'],
  ]);

  /** @throws RegistrationError for a route that cannot be served, naming its plugin. */
  constructor(
    plugins: readonly { readonly name: string; readonly plugin: { readonly routes?: readonly Route[] | undefined } }[],
  ) {
    this.#serve('POST', ENDPOINTS);
    for (const { name, plugin } of plugins) for (const route of plugin.routes ?? []) this.#add(name, route);
  }

  find(method: string, path: string): Found {
    const { path: matched, pathAndMethod } = this.#router.match(path, method);
    const [layer] = pathAndMethod;
    const target = this.#targets.get(layer);
    if (layer !== undefined && target !== undefined)
      return { target, params: layer.params(path, layer.captures(path)) };
    const anywhere = this.#anywhere.get(method) ?? (method === 'HEAD' ? this.#anywhere.get('GET') : undefined);
    if (anywhere !== undefined) return { target: anywhere, params: {} };
    const [first] = matched;
    if (first === undefined) return refusing('(no route)', new Refusal(404, 'Not Found'));
    const allow = [...new Set(matched.flatMap(({ methods }) => methods))].join(', ');
    return refusing(String(first.path), new Refusal(405, 'Method Not Allowed', { headers: { Allow: allow } }));
  }

  #serve(method: string, target: RouteTarget): void {
    if (target.route === '*') this.#anywhere.set(method.toUpperCase(), target);
    else
      this.#targets.set(
        this.#router.register(target.route, [method.toLowerCase()], () => undefined),
        target,
      );
  }

  #add(name: string, route: Route): void {
    const { method, path, admit, maxBody = 0 } = route;
    const claim = `${method.toUpperCase()} ${path.replace(/:\w+/g, ':')}`;
    const owner = this.#owners.get(claim);
    if (owner !== undefined)
      throw new RegistrationError(`plugins "${owner}" and "${name}" both serve ${method} ${path}`);
    this.#owners.set(claim, name);
    try {
      this.#serve(method, { route: path, admit, maxBody, by: routeKey(route) });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new RegistrationError(`plugin "${name}": route ${method} ${path}: ${why}`);
    }
  }
}

function refusing(route: string, by: Refusal): Found {
  return { target: { route, admit: false, maxBody: 0, by }, params: {} };
}
