/**
 * What somebody else's work comes to, if it comes in time.
 *
 * @param late what is to be had otherwise, or thrown.
 */
export async function within<T>(milliseconds: number, work: Promise<T>, late: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<() => T>((resolve) => {
    timer = setTimeout(resolve, milliseconds, late);
  });
  try {
    const first = await Promise.race([work.then((result) => () => result), timeout]);
    return first();
  } finally {
    clearTimeout(timer);
  }
}
