/** Cuts a text to its first `most` characters, and shows the cut by an ellipsis. */
export function clipped(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Returns the message of an error, or the text of anything else that was thrown. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Writes one UTF-16 code unit as an escape that JSON and double-quoted YAML both read: `\u001b`. */
export function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Returns a PEM with real line ends: Docker and dotenv pass `\n` on as two characters. */
export function pemText(text: string): string {
  return text.replace(/(?:\\r)?\\n/g, '\n');
}
