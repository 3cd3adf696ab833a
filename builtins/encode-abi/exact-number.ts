/** Where a value is in a JSON document: member names and array indices from the root. */
export type Location = readonly (string | number)[];

/** A string, a bracket or brace, or a number or literal. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}]|[^\s,:"[\]{}]+/g;
/** Stops at numbers and literals no more. */
const BRACKET_OR_STRING = /[[\]{}]|"(?:[^"\\]|\\.)*"/g;

/** What is wanted of a list or object, by name or index. Where nothing is, the value itself is wanted. */
type Wanted = Map<string | number, Wanted>;
/** The text of a value that is no list or object, or what was found in one. */
type Found = string | Map<string | number, Found>;

/**
 * The source texts of numbers, digit by digit: what `JSON.parse` rounds to a double. The text is read once for all of them.
 * Of duplicate member names the last one counts, as in `JSON.parse`.
 *
 * @param json that `JSON.parse` has accepted
 * @param locations nothing is found where one is not given, and where there is no number.
 */
export function numberTextsAt(json: string, locations: readonly (Location | undefined)[]): (string | undefined)[] {
  const wanted: Wanted = new Map();
  for (const location of locations) location?.reduce(childOf, wanted);
  TOKEN.lastIndex = 0;
  const root = read(json, nextToken(json), wanted);
  return locations.map((location) => {
    const found = location?.reduce<Found | undefined>(foundIn, root);
    return typeof found === 'string' && /^[-\d]/.test(found) ? found : undefined;
  });
}

function childOf(parent: Wanted, step: string | number): Wanted {
  const child = parent.get(step) ?? new Map();
  parent.set(step, child);
  return child;
}

function foundIn(parent: Found | undefined, step: string | number): Found | undefined {
  return parent instanceof Map ? parent.get(step) : undefined;
}

function nextToken(json: string): string {
  return TOKEN.exec(json)?.[0] ?? '';
}

/** @param token that the value begins with, and that was read last. */
function read(json: string, token: string, wanted: Wanted): Found {
  const isList = token === '[';
  if (!isList && token !== '{') return token;
  const found: Found = new Map();
  for (let index = 0; ; index++) {
    // No element comes twice.
    if (wanted.size === 0 || (isList && found.size === wanted.size)) {
      skipRest(json);
      return found;
    }
    const first = nextToken(json);
    if (first === ']' || first === '}') return found;
    const key = isList ? index : JSON.parse(first);
    const begin = isList ? first : nextToken(json);
    const child = wanted.get(key);
    if (child !== undefined) found.set(key, read(json, begin, child));
    else if (begin === '[' || begin === '{') skipRest(json);
  }
}

/** Goes on behind the list or object that is being read. */
function skipRest(json: string): void {
  BRACKET_OR_STRING.lastIndex = TOKEN.lastIndex;
  for (let depth = 1; depth > 0 && BRACKET_OR_STRING.test(json); ) {
    const last = json[BRACKET_OR_STRING.lastIndex - 1];
    if (last === '[' || last === '{') depth++;
    else if (last === ']' || last === '}') depth--;
  }
  TOKEN.lastIndex = BRACKET_OR_STRING.lastIndex;
}
