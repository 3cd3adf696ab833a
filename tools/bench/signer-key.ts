/** Signs for nobody but the benchmark. */
export const SIGNER_KEY = `0x${'33'.repeat(32)}`;
