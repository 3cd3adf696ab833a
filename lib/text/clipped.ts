/** As many characters of a text as others are to read. */
export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
