/** The address that the person expects to have signed; one for all endpoints of the page, kept nowhere else. */
export class Pin {
  #address: string;
  readonly #watchers: Array<() => void> = [];

  constructor(address: string) {
    this.#address = address;
  }

  get address(): string {
    return this.#address;
  }

  set(address: string): void {
    if (address === this.#address) return;
    this.#address = address;
    for (const watcher of this.#watchers) watcher();
  }

  /** Calls `watcher` after every change. */
  watch(watcher: () => void): void {
    this.#watchers.push(watcher);
  }
}
