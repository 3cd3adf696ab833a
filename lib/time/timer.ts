/** Milliseconds; a longer delay would make Node's timers fire at once. */
export const LONGEST_TIMER = 2 ** 31 - 1;
