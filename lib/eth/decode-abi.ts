const WORD_DIGITS = 64;
const ELEMENTARY = /^(?:bool|address|string|bytes(?:[1-9]|[12]\d|3[0-2])?|u?int(\d{1,3}))$/;

/** Checks whether a text is a comma-separated list of elementary types by their canonical names, such as `int256,string`. */
export function areElementary(types: string): boolean {
  return types.split(',').every((type) => {
    const [, bits] = ELEMENTARY.exec(type.trim()) ?? [undefined, '0'];
    return bits === undefined || (/^[1-9]/.test(bits) && Number(bits) % 8 === 0 && Number(bits) <= 256);
  });
}

/** A decoded value as text for a person: a string in quotes, bytes in hex. */
export interface Decoded {
  readonly type: string;
  readonly value: string;
}

/**
 * Decodes ABI-encoded data (Solidity ABI specification, "Formal Specification of the Encoding").
 *
 * @param data `0x` hex.
 * @param types elementary types, comma-separated.
 * @returns undefined unless the data is exactly what `abi.encode` makes of values of these types. So a ciphertext in the
 * place of an integer is never mistaken for one.
 */
export function decodeAbi(data: string, types: string): readonly Decoded[] | undefined {
  const hex = data.slice(2).toLowerCase();
  const names = types.split(',').map((name) => name.trim());
  let end = names.length * WORD_DIGITS;
  const values: Decoded[] = [];
  for (const [i, name] of names.entries()) {
    const head = hex.slice(i * WORD_DIGITS, (i + 1) * WORD_DIGITS);
    if (head.length !== WORD_DIGITS) return undefined;
    let value: string | undefined;
    if (name === 'string' || name === 'bytes') {
      const start = end + WORD_DIGITS;
      const digits = 2 * Number(`0x${hex.slice(end, start)}`);
      const content = hex.slice(start, start + digits);
      const padded = content.padEnd(Math.ceil(content.length / WORD_DIGITS) * WORD_DIGITS, '0');
      if (Number(`0x${head}`) !== end / 2 || content.length !== digits || !hex.startsWith(padded, start))
        return undefined;
      end = start + padded.length;
      value = name === 'bytes' ? `0x${content}` : quotedText(content);
    } else value = wordOf(name, head);
    if (value === undefined) return undefined;
    values.push({ type: name, value });
  }
  return hex.length === end ? values : undefined;
}

function quotedText(content: string): string | undefined {
  try {
    return JSON.stringify(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytesOf(content)));
  } catch {
    return undefined;
  }
}

/** Reads lower-case hex digits one by one: texts may be long, and `parseInt` takes ten times as long. */
function bytesOf(hex: string): Uint8Array {
  const digit = (at: number) => {
    const code = hex.charCodeAt(at);
    return code < 58 ? code - 48 : code - 87;
  };
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = digit(2 * i) * 16 + digit(2 * i + 1);
  return bytes;
}

function wordOf(name: string, word: string): string | undefined {
  if (name === 'bool') return /^0{63}[01]$/.test(word) ? String(word.endsWith('1')) : undefined;
  if (name === 'address') return /^0{24}/.test(word) ? `0x${word.slice(24)}` : undefined;
  const [, kind, size = ''] = /^(uint|int|bytes)(\d+)$/.exec(name) ?? [];
  if (kind === 'bytes') {
    const digits = Number(size) * 2;
    return /^0*$/.test(word.slice(digits)) ? `0x${word.slice(0, digits)}` : undefined;
  }
  if (kind === undefined) return undefined;
  const bits = Number(size);
  const number = BigInt(`0x${word}`);
  const value = kind === 'uint' ? BigInt.asUintN(bits, number) : BigInt.asIntN(bits, number);
  return BigInt.asUintN(256, value) === number ? String(value) : undefined;
}
