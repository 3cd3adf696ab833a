/** A PEM as it is read: Docker and dotenv hand on `\n` as two characters, where a line ends. */
export function pemText(text: string): string {
  return text.replace(/(?:\\r)?\\n/g, '\n');
}
