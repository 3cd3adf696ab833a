export function program(): Promise<string>;
export function bundlePackage(outdir: URL): Promise<void>;
