import {
  AddressSchema,
  type CheckContext,
  checkAddress,
  configKey,
  declaredParameters,
  definePlugin,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  MillisecondsSchema,
  Type,
  warning,
} from '../plugins-sdk/index.ts';

const matchesKey = configKey(
  'endpoint',
  'responseMatches',
  Type.Optional(
    Type.Array(
      Type.Object(
        { type: Type.Literal('regex'), value: Type.String({ minLength: 1 }) },
        { additionalProperties: false },
      ),
    ),
  ),
);
const proofKey = configKey(
  'settings',
  'proof',
  Type.Optional(
    Type.Union([
      Type.Literal('none'),
      Type.Object(
        {
          type: Type.Literal('reclaim'),
          gatewayUrl: Type.String({ pattern: '^https?://' }),
          timeout: Type.Optional(MillisecondsSchema),
          attestors: Type.Optional(Type.Array(AddressSchema, { minItems: 1 })),
        },
        { additionalProperties: false },
      ),
    ]),
  ),
);

function isRegExp(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}

/** The claim that clients get shows the URL and the body. */
const SHOWN = new Set(['query', 'path', 'body']);

function checkEndpoint(endpoint: EndpointDraft, context: CheckContext): Finding[] {
  const matches = matchesKey.of(endpoint) ?? [];
  if (matches.length === 0) return [];
  const at = `${endpoint.path}.responseMatches`;
  const secret = declaredParameters(endpoint, context).filter(
    (parameter) => parameter.secret && SHOWN.has(parameter.in),
  );
  return [
    ...matches.flatMap(({ value }, i) =>
      isRegExp(value) ? [] : [error(`${at}[${i}].value`, 'is no valid regular expression')],
    ),
    ...secret.map(({ name }) => error(at, `the proof would show the secret parameter "${name}"`)),
    ...(keys.method.of(endpoint) === 'DELETE' ? [warning(at, 'has no effect with the method DELETE')] : []),
  ];
}

function check(context: CheckContext): Finding[] {
  const proof = proofKey.in(context.config) ?? 'none';
  const attestors = proof === 'none' ? [] : (proof.attestors ?? []);
  return [
    ...attestors.flatMap((address, i) => checkAddress(`settings.proof.attestors[${i}]`, address)),
    ...(proof === 'none' ? [] : [warning('settings.proof', 'TLS proofs are not built yet: answers come without one')]),
    ...context.endpoints.flatMap((endpoint) => checkEndpoint(endpoint, context)),
  ];
}

/** TLS proofs of upstream answers. Until the gateway is asked, answers come without one, as after any failed proof. */
export const tlsProof = definePlugin({
  name: 'tls-proof',
  budget: 60_000,
  keys: [matchesKey, proofKey],
  check,
  setup({ endpoints, config, log }) {
    const enabled = (proofKey.in(config) ?? 'none') !== 'none';
    const wanting = new Set(endpoints.filter((endpoint) => enabled && (matchesKey.of(endpoint) ?? []).length > 0));
    return {
      hooks: {
        prove: ({ endpoint, requestId }) => {
          if (wanting.has(endpoint)) log.warn('no TLS proof: not built yet', { requestId, endpointId: endpoint.id });
          return undefined;
        },
      },
    };
  },
});
