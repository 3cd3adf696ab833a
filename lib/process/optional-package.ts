/**
 * Loads a package that operators install only if they use it.
 *
 * @param load imports it, for example `() => import('ioredis')`.
 * @param missing error text if the package, or one that it needs, is not installed: which setting needs it, and the command.
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
