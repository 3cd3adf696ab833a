/** Writes one UTF-16 code unit as an escape that JSON and double-quoted YAML both read: `\u001b`. */
export function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
