/** The fields for keys on all forms of the page: what is typed once for an API stands in all of its forms. */
export class Keys {
  readonly #fields = new Map<string, HTMLInputElement[]>();

  /** @param name what is the same key. */
  join(name: string, field: HTMLInputElement): void {
    const same = this.#fields.get(name) ?? [];
    field.value = same[0]?.value ?? '';
    same.push(field);
    this.#fields.set(name, same);
    field.addEventListener('input', () => {
      for (const other of same) other.value = field.value;
    });
  }
}
