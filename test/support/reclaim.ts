import { id, Wallet } from 'ethers';
import { faults, type Handler } from './upstream.ts';

/** Keys that are public knowledge: further accounts of every local test chain. */
export const attestor = new Wallet('0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d');
export const stranger = new Wallet('0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a');
const OWNER = '0x90f79bf6eb2c4f870365e785982e1f101e93b906';

/** What a gateway is asked. */
export interface Asked {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly responseMatches: readonly unknown[];
}

export interface TestClaim {
  provider: string;
  parameters: string;
  context: string;
  owner: string;
  timestampS: number;
  epoch: number;
  identifier: string;
}

export interface TestProof {
  claim: TestClaim;
  signatures: { attestorAddress: string; claimSignature: string };
}

export interface Signing {
  readonly signer?: Wallet;
  /** Changes what is claimed, before its identifier and signature are made. */
  readonly claim?: Partial<TestClaim>;
  /** Changes the parameters that are claimed. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** A claim about what a gateway is asked, signed with ethers as an attestor signs it. */
export async function signedProof(asked: Asked, { signer = attestor, ...changes }: Signing = {}): Promise<TestProof> {
  const { url, method, body = '', responseMatches } = asked;
  const parameters = { body, method, responseMatches, responseRedactions: [], url, ...changes.parameters };
  const claim = {
    provider: 'http',
    parameters: JSON.stringify(parameters),
    context: '{"extractedParameters":{"price":"3"},"providerHash":"0x00"}',
    owner: OWNER,
    timestampS: Math.floor(Date.now() / 1000),
    epoch: 1,
    ...changes.claim,
  };
  const identifier = changes.claim?.identifier ?? id(`${claim.provider}\n${claim.parameters}\n${claim.context}`);
  const text = `${identifier}\n${claim.owner.toLowerCase()}\n${claim.timestampS}\n${claim.epoch}`;
  const claimSignature = await signer.signMessage(text);
  return {
    claim: { ...claim, identifier },
    signatures: { attestorAddress: signer.address.toLowerCase(), claimSignature },
  };
}

/** A gateway's answer: what `answer` makes of the question, as JSON unless it is text. */
export function gateway(answer: (asked: Asked) => unknown): Handler {
  return async (req, res, recorded) => {
    const value = await answer(JSON.parse(recorded.body));
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return faults.text(text)(req, res, recorded);
  };
}

/** A gateway that proves whatever it is asked. */
export const honest = gateway((asked) => signedProof(asked));
