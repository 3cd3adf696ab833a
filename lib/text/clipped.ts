/** Cuts a text to its first `most` characters, and shows the cut by an ellipsis. */
export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
