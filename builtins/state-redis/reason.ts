import { StateUnavailable } from '../../plugins-sdk/state.ts';
import { nameOf, type RedisTarget } from './target.ts';

/** Whether the server itself said so, and nothing else went wrong. @param begin of what it said. */
export function isReply(error: unknown, begin = ''): error is Error {
  return error instanceof Error && error.name === 'ReplyError' && error.message.startsWith(begin);
}

/** What went wrong, for those who operate the service: a sentence without secrets, and without what was asked for. */
export function unavailable(target: RedisTarget, error: unknown): StateUnavailable {
  if (error instanceof StateUnavailable) return error;
  return new StateUnavailable(`${nameOf(target)} ${isReply(error) ? answered(target, error) : failed(error)}`);
}

function answered({ db, password }: RedisTarget, { message }: Error): string {
  // A server that does not know a command repeats its arguments.
  const [known = ''] = message.split(', with args beginning with', 1);
  const said = password === undefined ? known : known.replaceAll(password, '***');
  if (/^NOAUTH/.test(said)) return 'needs a password: set settings.state.password';
  if (/^WRONGPASS/.test(said)) return 'refuses settings.state.username or settings.state.password';
  if (/^NOPERM/.test(said)) return `does not allow its user what is needed: ${said}`;
  if (/DB index is out of range/.test(said)) return `has no database ${db}`;
  return `answered: ${said}`;
}

function failed(error: unknown): string {
  const { message = '', code }: { message?: string; code?: unknown } = error instanceof Error ? error : {};
  if (/Unknown RESP type/.test(message)) return 'is no Redis and no Valkey';
  if (/^Socket timeout/.test(message)) return 'does not answer';
  if (code !== undefined) return `cannot be reached: ${code}`;
  // What the library says while it does not try again.
  return message === 'Connection is closed.' ? 'closed the connection' : 'is not connected';
}

/** What else to look at when a server that was never reached fails in this way. */
export function hint({ tls }: RedisTarget, message: string): string {
  if (tls === undefined)
    return /(?:closed the connection|ECONNRESET)$/.test(message)
      ? '; if it expects TLS, url begins with rediss://'
      : '';
  return /(?:closed the connection|ECONNRESET|ETIMEDOUT|EPROTO|WRONG_VERSION_NUMBER)$/.test(message)
    ? '; if it speaks no TLS, url begins with redis:// and tls is left out'
    : '';
}
