import { answerStatement } from '../../lib/eth/statements.ts';
import {
  type CheckContext,
  error,
  type Finding,
  optionalKey,
  receiptKey,
  signerKey,
  warning,
} from '../../plugins-sdk/config.ts';
import {
  type Behaviour,
  type Definition,
  definePlugin,
  type Endpoint,
  type Exchange,
  type Hex,
  perEndpoint,
  type Services,
  Type,
  toBytes,
} from '../../plugins-sdk/index.ts';
import type { Dependency } from '../../plugins-sdk/observe.ts';
import {
  listedAs,
  markChecked,
  type Signed,
  type SignerInUse,
  type Signing,
  type SignRequest,
  type Statement,
  signersIn,
  signerType,
} from '../../plugins-sdk/signing.ts';
import { describeSigning } from './openapi.ts';
import { RemoteSigner, signingMeters } from './remote-signer.ts';

const signaturesKey = optionalKey(
  'apiOrEndpoint',
  'signatures',
  Type.Boolean({ description: 'Adds the signatures of the signer and of settings.signer.next; default false' }),
);

/** Whether answers of an endpoint list the signatures of all signers. */
function isListed(endpoint: Pick<Endpoint, 'block' | 'apiBlock'>): boolean {
  return signaturesKey.of(endpoint) === true;
}

/** Finds a next signer that is the current one, which would rotate nothing, and one whose signatures no endpoint shows. */
function* checkNext({ config, endpoints }: CheckContext): Iterable<Finding> {
  const [own, next] = signersIn(config).map(([, { address }]) => String(address ?? '').toLowerCase());
  if (next === undefined) return;
  const at = 'settings.signer.next';
  if (own !== '' && own === next) yield error(`${at}.address`, 'is that of the signer that signs already');
  if (!endpoints.some(isListed)) yield warning(at, 'signs no answer: no API and no endpoint has "signatures: true"');
}

/** An account that signs; synchronously, if its key is in this process. */
interface Signatory {
  readonly address: Hex;
  sign(statements: readonly Statement[], exchange: Exchange): readonly Hex[] | Promise<readonly Hex[]>;
}

/** The signal for a key in this process, which signs synchronously: there is nothing to abort. */
const NEVER_ABORTS = new AbortController().signal;

function local({ signer }: SignerInUse): Signatory {
  const one = (statement: Statement): Hex => {
    const signature = signer.sign(statement, NEVER_ABORTS);
    if (signature instanceof Promise) throw new Error('a local signer signs at once');
    return signature;
  };
  return { address: signer.address, sign: (statements) => statements.map(one) };
}

function missing(): never {
  throw new Error('a statement has no signature');
}

/** Returns one signer's entry of the list `signatures`. */
function entryOf(
  { address }: Signatory,
  { statements = [] }: SignRequest,
  [signature = missing(), ...others]: readonly Hex[],
) {
  const named = statements.map(({ name }, index): [string, Hex] => [listedAs(name), others[index] ?? missing()]);
  return { node: address, signature, ...Object.fromEntries(named) };
}

/** Makes the function that signs answers and the statements attached to them, and nothing else. */
function signingBy(endpoints: readonly Endpoint[], current: Signatory, next: Signatory | undefined) {
  const prepared = perEndpoint(endpoints, (endpoint) => ({ id: toBytes(endpoint.id), wantsAll: isListed(endpoint) }));
  return (request: SignRequest, exchange: Exchange): Signed | Promise<Signed> => {
    const { id, wantsAll } = prepared(exchange.endpoint);
    const attached = request.statements?.map(({ typed }) => typed as Statement) ?? [];
    const answer = answerStatement(request, id);
    const all = [answer, ...attached];
    const byCurrent = current.sign(all, exchange);
    const byNext = wantsAll ? (next?.sign(all, exchange) ?? []) : undefined;
    const together = (own: readonly Hex[], others: readonly Hex[] | undefined) => {
      const [signature = missing(), ...statements] = own;
      const { address: node } = current;
      const signed = { node, signature, digest: answer.digest, ...(statements.length > 0 && { statements }) };
      if (others === undefined) return markChecked(signed);
      const more = next ? [entryOf(next, request, others)] : [];
      return markChecked({ ...signed, extra: { signatures: [entryOf(current, request, own), ...more] } });
    };
    if (!(byCurrent instanceof Promise) && !(byNext instanceof Promise)) return together(byCurrent, byNext);
    return Promise.all([byCurrent, byNext]).then(([own, others]) => together(own, others));
  };
}

/** Describes a remote signer as a dependency: every endpoint needs the signer, and some need the next one, too. */
function dependencyOn({ role, type }: SignerInUse, signer: RemoteSigner): Dependency {
  const isNext = role === 'next';
  return {
    name: `${isNext ? 'next signer' : 'signer'} ${type}`,
    isAvailable: () => signer.isAvailable,
    isNeeded: (endpoint) => !isNext || isListed(endpoint),
  };
}

function behaviour({ endpoints, config, meters, status, log }: Services, signing: Signing): Behaviour {
  const { current, next } = signing.opened(config);
  const inUse = [current, ...(next ? [next] : [])];
  const withReceipts = endpoints.some((endpoint) => receiptKey.of(endpoint) === true);
  const outside = inUse.filter((use) => !use.local);
  const isAvailable = () => [...remote.values()].every((signer) => signer.isAvailable);
  const measured = signingMeters(meters, outside, isAvailable);
  const remote = new Map(outside.map((use) => [use, new RemoteSigner(use, withReceipts, log, measured)]));
  const signatory = (use: SignerInUse): Signatory => remote.get(use) ?? local(use);
  const sign = signingBy(endpoints, signatory(current), next && signatory(next));
  status.show('signers', () =>
    inUse.map((use) => {
      const state = remote.get(use)?.isAvailable === false ? 'away' : 'up';
      return { role: use.role, type: use.type, address: use.signer.address, state };
    }),
  );
  return {
    start: async () => void (await Promise.all([...remote.values()].map((signer) => signer.start()))),
    stop: () => {
      for (const signer of remote.values()) signer.stop();
    },
    dependencies: [...remote].map(([use, signer]) => dependencyOn(use, signer)),
    hooks: { sign },
  };
}

/** In milliseconds: the default timeout of a signature, and what the budget has beyond the timeout. */
const [DEFAULT_TIMEOUT_MS, MARGIN_MS] = [5000, 1000];

/** Returns a budget beyond the longer timeout of the two signers, which are asked at once: a signer times out first. */
function budgetOf(config: Services['config']): number {
  const timeouts = signersIn(config).map(([, { timeout = DEFAULT_TIMEOUT_MS }]) => Number(timeout));
  return Math.max(0, ...timeouts) + MARGIN_MS;
}

/**
 * Signs keccak256(encodePacked(bytes32 endpointId, uint256 timestamp, bytes data)) with EIP-191, and receipts with EIP-712, by
 * the signer of `settings.signer`. That signer has the key of the environment, or another plugin contributes it.
 * @param signing absent for a command that serves nothing.
 */
export function signEip191(signing?: Signing): Definition {
  const required = () => {
    if (signing === undefined) throw new Error('there is no signer');
    return signing;
  };
  return definePlugin({
    name: 'sign-eip191',
    budget: budgetOf,
    keys: [signerKey, signaturesKey],
    signers: {
      environment: signerType({ schema: Type.Object({}), local: true, open: (_, { role }) => required().key(role) }),
    },
    signerAddress: (_, whole) => required().opened(whole).current.signer.address,
    check: (context) => [...checkNext(context)],
    openapi: ({ config, endpoints }) => describeSigning(config, endpoints.some(isListed)),
    setup: (services) => behaviour(services, required()),
  });
}
