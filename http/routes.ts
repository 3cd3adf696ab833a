import Router from '@koa/router';
import { Refusal } from '../kernel/refusal.ts';
import { RegistrationError, type Route, routeKey } from '../kernel/registry.ts';

/** What serves the requests of a path. */
export interface Target {
  /** The pattern of the path, as it stands in logs and metrics. */
  readonly route: string;
  /** Whether a request must be let in first, and may be shed. */
  readonly admit: boolean;
  /** Bytes of a body that are read before it is served. */
  readonly maxBody: number;
  /** The route of a plugin, by its key; an endpoint; or why nobody serves it. */
  readonly by: string | 'endpoint' | Refusal;
}

/** What the pattern of a route found in a path. */
export type PathParameters = Readonly<Record<string, string>>;

/** The path of endpoints, which are the kernel's own. */
export const ENDPOINTS: Target = { route: '/endpoints/:endpointId', admit: true, maxBody: 0, by: 'endpoint' };

const none: PathParameters = Object.freeze({});

/** Which target serves a request. */
export class Routes {
  readonly #router = new Router({ strict: true, sensitive: true });
  readonly #targets = new Map<unknown, Target>();
  /** Routes of any path, by method. */
  readonly #anywhere = new Map<string, Target>();
  /** Who serves what; two routes whose patterns differ in the names of their parameters only are the same. */
  readonly #owners = new Map([
    ['POST /endpoints/:', 'kernel'],
    ['POST *', 'kernel'],
  ]);

  /** @throws RegistrationError for a route that cannot be served, naming its plugin. */
  constructor(
    plugins: readonly { readonly name: string; readonly plugin: { readonly routes?: readonly Route[] | undefined } }[],
  ) {
    this.#targets.set(
      this.#router.register(ENDPOINTS.route, ['post'], () => undefined),
      ENDPOINTS,
    );
    for (const { name, plugin } of plugins) for (const route of plugin.routes ?? []) this.#add(name, route);
  }

  find(method: string, path: string): { readonly target: Target; readonly params: PathParameters } {
    const { path: matched, pathAndMethod } = this.#router.match(path, method);
    const [layer] = pathAndMethod;
    const target = this.#targets.get(layer);
    if (layer !== undefined && target !== undefined)
      return { target, params: layer.params(path, layer.captures(path)) };
    const anywhere = this.#anywhere.get(method) ?? (method === 'HEAD' ? this.#anywhere.get('GET') : undefined);
    if (anywhere !== undefined) return { target: anywhere, params: none };
    const [first] = matched;
    if (first === undefined) return { target: NOWHERE, params: none };
    const allow = [...new Set(matched.flatMap(({ methods }) => methods))].join(', ');
    return {
      target: refusing(String(first.path), new Refusal(405, 'Method Not Allowed', { headers: { Allow: allow } })),
      params: none,
    };
  }

  #add(name: string, route: Route): void {
    const { method, path, admit, maxBody = 0 } = route;
    const claim = `${method.toUpperCase()} ${path.replace(/:\w+/g, ':')}`;
    const owner = this.#owners.get(claim);
    if (owner !== undefined)
      throw new RegistrationError(`plugins "${owner}" and "${name}" both serve ${method} ${path}`);
    this.#owners.set(claim, name);
    const target = { route: path, admit, maxBody, by: routeKey(route) };
    if (path === '*') {
      this.#anywhere.set(method.toUpperCase(), target);
      return;
    }
    try {
      this.#targets.set(
        this.#router.register(path, [method.toLowerCase()], () => undefined),
        target,
      );
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new RegistrationError(`plugin "${name}": route ${method} ${path}: ${why}`);
    }
  }
}

function refusing(route: string, by: Refusal): Target {
  return { route, admit: false, maxBody: 0, by };
}

const NOWHERE = refusing('(no route)', new Refusal(404, 'Not Found'));
