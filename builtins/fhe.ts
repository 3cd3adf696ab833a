import {
  AddressSchema,
  type CheckContext,
  checkAddress,
  configKey,
  definePlugin,
  type EndpointDraft,
  error,
  type Finding,
  keys,
  MillisecondsSchema,
  Refusal,
  Type,
  warning,
} from '../plugins-sdk/index.ts';

const encryptKey = configKey(
  'endpoint',
  'encrypt',
  Type.Optional(
    Type.Object(
      {
        type: Type.Enum(['euint8', 'euint16', 'euint32', 'euint64', 'euint128', 'euint256']),
        contract: AddressSchema,
      },
      { additionalProperties: false },
    ),
  ),
);

const UrlSchema = Type.String({ pattern: '^https?://' });
const relayerKey = configKey(
  'settings',
  'fhe',
  Type.Optional(
    Type.Union([
      Type.Literal('none'),
      Type.Object(
        {
          network: Type.Enum(['sepolia', 'mainnet']),
          rpcUrl: UrlSchema,
          verifier: AddressSchema,
          apiKey: Type.Optional(Type.String()),
          relayerUrl: Type.Optional(UrlSchema),
          timeout: Type.Optional(MillisecondsSchema),
        },
        { additionalProperties: false },
      ),
    ]),
  ),
);

function checkEndpoint(endpoint: EndpointDraft, configured: boolean): Finding[] {
  const encrypt = encryptKey.of(endpoint);
  if (encrypt === undefined) return [];
  const at = `${endpoint.path}.encrypt`;
  const { type, path } = keys.encoding.of(endpoint) ?? {};
  return [
    ...(configured ? [] : [error(at, 'requires settings.fhe')]),
    ...(type === 'int256' || type === 'uint256' ? [] : [error(at, 'requires an encoding with type int256 or uint256')]),
    ...(path === '*' ? [error(at, 'requires an encoding with a path of its own')] : []),
    ...checkAddress(`${at}.contract`, encrypt.contract),
    warning(at, 'FHE encryption is not built yet: every request ends in 502 FHE encryption failed'),
  ];
}

function check({ config, endpoints }: CheckContext): Finding[] {
  const relayer = relayerKey.in(config) ?? 'none';
  const findings = relayer === 'none' ? [] : checkAddress('settings.fhe.verifier', relayer.verifier);
  return [...findings, ...endpoints.flatMap((endpoint) => checkEndpoint(endpoint, relayer !== 'none'))];
}

/** Replaces an encoded integer by a ciphertext. Until the relayer is asked, an endpoint that wants it is refused. */
export const fhe = definePlugin({
  name: 'fhe',
  budget: 'none',
  keys: [encryptKey, relayerKey],
  identity: {
    encrypt: (endpoint) => {
      const encrypt = encryptKey.of(endpoint);
      return encrypt === undefined ? null : { type: encrypt.type, contract: encrypt.contract.toLowerCase() };
    },
  },
  check,
  setup({ endpoints }) {
    const wanting = new Set(endpoints.filter((endpoint) => encryptKey.of(endpoint) !== undefined));
    return {
      hooks: {
        encrypt: (_, { endpoint }) => {
          if (!wanting.has(endpoint)) return undefined;
          throw new Refusal(502, 'FHE encryption failed', { reason: 'FHE encryption is not built yet' });
        },
      },
    };
  },
});
