export function program(): Promise<string>;
export function bundlePackage(outdir: string): Promise<void>;
