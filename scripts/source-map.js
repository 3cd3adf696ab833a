const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The numbers of a segment of a source map. https://tc39.es/ecma426/#sec-base64-vlq */
function decode(segment) {
  const numbers = [];
  let bits = 0;
  let shift = 0;
  for (const digit of segment) {
    const value = DIGITS.indexOf(digit);
    bits += (value & 31) << shift;
    shift += 5;
    if (value < 32) {
      numbers.push(bits & 1 ? -(bits >> 1) : bits >> 1);
      bits = 0;
      shift = 0;
    }
  }
  return numbers;
}

function encode(number) {
  let rest = number < 0 ? (-number << 1) | 1 : number << 1;
  let text = '';
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>= 5;
  } while (rest > 0);
  return text;
}

/** A source map without what is not wanted of it, and without names. */
export function mapOf({ version, sources, mappings }, isWanted) {
  const own = sources.filter(isWanted);
  const position = sources.map((source) => own.indexOf(source));
  const read = [0, 0, 0];
  const written = [0, 0, 0];
  const lines = mappings.split(';').map((line) => {
    let column = 0;
    let writtenColumn = 0;
    const segments = line.split(',').flatMap((segment) => {
      const [step = 0, ...steps] = decode(segment);
      column += step;
      for (const i of read.keys()) read[i] += steps[i] ?? 0;
      const source = position[read[0]] ?? -1;
      if (steps.length === 0 || source < 0) return [];
      const place = [source, read[1], read[2]];
      const text = [column - writtenColumn, ...place.map((value, i) => value - written[i])].map(encode).join('');
      writtenColumn = column;
      for (const [i, value] of place.entries()) written[i] = value;
      return [text];
    });
    return segments.join(',');
  });
  return { version, sources: own, names: [], mappings: lines.join(';') };
}
