/** The longest delay of a Node.js timer, in milliseconds. */
export const LONGEST_TIMER = 2 ** 31 - 1;
