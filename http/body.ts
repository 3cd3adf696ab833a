import type { IncomingMessage } from 'node:http';
import { Refusal, refusals } from '../kernel/refusal.ts';

/**
 * The body of a request, as it was sent.
 * @param max bytes.
 * @throws Refusal 413 for more, 499 for a body that ends early.
 */
export function readBody(request: IncomingMessage, max: number): Promise<Buffer> {
  const tooLarge = () => new Refusal(413, 'Request body too large', { failure: false });
  if (Number(request.headers['content-length'] ?? 0) > max) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > max) reject(tooLarge());
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)));
    request.on('error', () => reject(refusals.abandoned()));
  });
}
