import { hash, randomBytes } from 'node:crypto';

const ROWS = 4;

/**
 * The greatest number that each of any number of keys was raised to, in fixed memory and never too low. It is a count-min
 * sketch (Cormode and Muthukrishnan, 2005) with conservative update (Estan and Varghese, 2002).
 *
 * A key has one cell in each of four rows. A cell holds the greatest number of all keys that share it, and the bound of a
 * key is the least of its cells. It is too high only where in each row another key has raised the cell. With n other keys that
 * has a probability of at most (n / width)⁴. Cells are chosen by a hash with a random secret, so that nobody can look for
 * keys that share those of another.
 */
export class CountMinSketch {
  readonly #secret = randomBytes(32).toString('hex');
  readonly #width: number;
  readonly #cells: Float64Array;

  /** @param width - cells in a row, of 8 bytes each; a positive integer. */
  constructor(width: number) {
    this.#width = width;
    this.#cells = new Float64Array(ROWS * width);
  }

  /** At least the greatest number that the key was raised to; 0 for one that shares no cells. */
  bound(key: string): number {
    return Math.min(...this.#places(key).map((place) => this.#cells[place] ?? 0));
  }

  raise(key: string, value: number): void {
    for (const place of this.#places(key)) this.#cells[place] = Math.max(this.#cells[place] ?? 0, value);
  }

  #places(key: string): number[] {
    const digest = hash('sha256', this.#secret + key, 'buffer');
    return Array.from({ length: ROWS }, (_, row) => row * this.#width + (digest.readUInt32LE(4 * row) % this.#width));
  }
}
