import dns, { type LookupAddress } from 'node:dns';

/** The addresses of a name, the code of its failure, or nothing until it is set to something else. */
export type Known = readonly string[] | 'ENOTFOUND' | 'EAI_AGAIN' | 'silence';

export interface Names {
  /** What was looked up. */
  readonly asked: string[];
  /** Sets or replaces what the resolver says of a name. */
  set(name: string, known: Known): void;
}

type Answer = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

/** Has the resolver of this process know these names, and no other one that ends in `.test`. */
export function knowNames(t: { after(restore: () => void): void }, names: Readonly<Record<string, Known>> = {}): Names {
  const { lookup } = dns;
  const known = new Map(Object.entries(names));
  const asked: string[] = [];
  const silent: (() => unknown)[] = [];
  const resolve = (name: string, ...rest: [options: object, answer: Answer]) => {
    asked.push(name);
    if (!name.endsWith('.test')) return Reflect.apply(lookup, dns, [name, ...rest]);
    const [, answer] = rest;
    const tell = (): unknown => {
      const found = known.get(name) ?? 'ENOTFOUND';
      if (found === 'silence') return silent.push(tell);
      if (typeof found === 'string') return setImmediate(answer, Object.assign(new Error(found), { code: found }), []);
      const addresses = found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
      return setImmediate(answer, null, addresses);
    };
    return tell();
  };
  Object.assign(dns, { lookup: resolve });
  t.after(() => {
    Object.assign(dns, { lookup });
  });
  const set = (name: string, answer: Known) => {
    known.set(name, answer);
    for (const tell of silent.splice(0)) tell();
  };
  return { asked, set };
}
