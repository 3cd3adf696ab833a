/** A text of a plugin, of as many characters as others are to read. */
export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
