/** Returns a PEM with real line ends: Docker and dotenv pass `\n` on as two characters. */
export function pemText(text: string): string {
  return text.replace(/(?:\\r)?\\n/g, '\n');
}
