/**
 * Loads a package that only those install who use it.
 *
 * @param load such as `() => import('ioredis')`.
 * @param missing what is thrown where the package, or one that it needs, is not there: which setting needs it, and the command.
 */
export async function optionalPackage<T>(load: () => Promise<T>, missing: string): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') throw error;
    throw new Error(missing);
  }
}
