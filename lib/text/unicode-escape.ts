/** One UTF-16 code unit as an escape that JSON, and YAML in double quotes, read as the same: `\u001b`. */
export function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
