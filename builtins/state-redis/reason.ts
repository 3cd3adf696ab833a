import { StateUnavailable } from '../../plugins-sdk/state.ts';
import type { RedisTarget } from './target.ts';

/** Whether an error is a reply of the server. @param begin how the reply must begin. */
export function isReply(error: unknown, begin = ''): error is Error {
  return error instanceof Error && error.name === 'ReplyError' && error.message.startsWith(begin);
}

/**
 * Makes an error for operators: one sentence without secrets and without the arguments of the command.
 *
 * @param name of the server or target at fault.
 */
export function unavailable(name: string, target: RedisTarget, error: unknown): StateUnavailable {
  if (error instanceof StateUnavailable) return error;
  return new StateUnavailable(
    `${name} ${isReply(error) ? answered(target.db, target.password, error.message) : failed(target, error)}`,
  );
}

function answered(db: number, password: string | undefined, message: string, settings = 'settings.state'): string {
  // A server repeats the arguments of a command that it does not know, and names the script in which a command failed.
  const [known = ''] = message.split(/, with args beginning with| script: [0-9a-f]{40}, on @user_script/, 1);
  const said = password === undefined ? known : known.replaceAll(password, '***');
  if (/^NOAUTH/.test(said)) return `needs a password: set ${settings}.password`;
  if (/^WRONGPASS/.test(said)) return `refuses ${settings}.username or ${settings}.password`;
  if (/^NOPERM/.test(said)) return `does not allow its user what is needed: ${said}`;
  if (/DB index is out of range/.test(said)) return `has no database ${db}`;
  if (/cluster support disabled/.test(said)) return 'is no node of a cluster: set url in place of urls';
  return `answered: ${said}`;
}

function failed({ db, sentinel }: RedisTarget, error: unknown): string {
  const { message = '', code }: { message?: string; code?: unknown } = error instanceof Error ? error : {};
  const [isLost, last] = /^All sentinels are unreachable.*?(?: Last error: (.*))?$/s.exec(message) ?? [];
  if (isLost !== undefined) {
    if (last === undefined) return 'cannot be found: no Sentinel says where it is';
    if (!/^[A-Z]+ /.test(last)) return 'cannot be found: no Sentinel can be reached';
    return `cannot be found: a Sentinel ${answered(db, sentinel?.password, last, 'settings.state.sentinel')}`;
  }
  if (/Unknown RESP type/.test(message)) return 'is no Redis and no Valkey';
  if (/^Socket timeout/.test(message)) return 'does not answer';
  if (code !== undefined) return `cannot be reached: ${code}`;
  // The library's message while it does not reconnect.
  return message === 'Connection is closed.' ? 'closed the connection' : 'is not connected';
}

/** Ends of messages that may mean TLS with a server without it, and plain text with a server that expects TLS. */
const PLAIN = /(?:closed the connection|can be reached|ECONNRESET|ETIMEDOUT|EPROTO|WRONG_VERSION_NUMBER)$/;
const SECURE = /(?:closed the connection|can be reached|ECONNRESET)$/;

/** Suggests another cause of the failure of a server that was never reached. */
export function hint({ tls }: RedisTarget, message: string): string {
  if (tls === undefined) return SECURE.test(message) ? '; if TLS is expected, write rediss://' : '';
  return PLAIN.test(message) ? '; if no TLS is spoken, write redis:// and leave tls out' : '';
}
