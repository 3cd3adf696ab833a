import fc from 'fast-check';

const [SURROGATES, COUNT] = [0xd800, 0x800];
const characterAt = (index: number) => String.fromCodePoint(index < SURROGATES ? index : index + COUNT);

/** A unit of texts: any character of Unicode. That of fast-check, `binary`, first makes a table of all million of them. */
export const anyCharacter = fc.nat(0x10ffff - COUNT).map(characterAt, (text) => {
  const code = String(text).codePointAt(0) ?? 0;
  const index = code < SURROGATES ? code : code - COUNT;
  if (text !== characterAt(index)) throw new Error('it is no character');
  return index;
});
