import type { Definition } from '../plugins-sdk/index.ts';
import type { Signing } from '../plugins-sdk/signing.ts';
import { audit } from './audit/index.ts';
import { authApiKey } from './auth-api-key/index.ts';
import { authFree } from './auth-free.ts';
import { authX402 } from './auth-x402/index.ts';
import { authX402Exact } from './auth-x402-exact/index.ts';
import { cache } from './cache/index.ts';
import { callApi } from './call-api/index.ts';
import { ccipRead } from './ccip-read/index.ts';
import { cors } from './cors.ts';
import { discovery } from './discovery/index.ts';
import { encodeAbiPlugin } from './encode-abi/index.ts';
import { encodeRaw } from './encode-raw/index.ts';
import { endpoints } from './endpoints.ts';
import { expect } from './expect.ts';
import { explorer } from './explorer/index.ts';
import { fhe } from './fhe/index.ts';
import { health } from './health/index.ts';
import { mcp } from './mcp/index.ts';
import { metrics } from './metrics/index.ts';
import { modeAsync } from './mode-async/index.ts';
import { modeStream } from './mode-stream/index.ts';
import { modeSync } from './mode-sync/index.ts';
import { openapi } from './openapi/index.ts';
import { parameters } from './parameters/index.ts';
import { rateLimit } from './rate-limit/index.ts';
import { receipt } from './receipt/index.ts';
import { requestBody } from './request-body/index.ts';
import { signEip191 } from './sign-eip191/index.ts';
import { signerAwsKms } from './signer-aws-kms.ts';
import { signerJsonRpc } from './signer-json-rpc.ts';
import { signerWeb3signer } from './signer-web3signer.ts';
import { stateFile } from './state-file/index.ts';
import { stateRedis } from './state-redis/index.ts';
import { status } from './status.ts';
import { tlsProof } from './tls-proof/index.ts';
import { tracing } from './tracing/index.ts';
import { upstreamBreaker } from './upstream-breaker/index.ts';
import { upstreamMirrors } from './upstream-mirrors/index.ts';
import { upstreamOauth2 } from './upstream-oauth2/index.ts';
import { upstreamQuota } from './upstream-quota/index.ts';
import { upstreamRetry } from './upstream-retry.ts';
import { upstreamShare } from './upstream-share.ts';

/** The plugin that calls upstreams: all others at its stage wrap it. */
export const innermost = callApi;

/** Plugins with routes of their own, and plugins that only observe. */
const beside = [ccipRead, discovery, explorer, mcp, status, metrics];

/**
 * Returns the built-in plugins in the order of their registration; within a stage the first comes first.
 * @param signing the signers; a command that serves nothing needs none.
 */
export function builtins(signing?: Signing): Definition[] {
  return [
    stateFile,
    stateRedis,
    tracing,
    rateLimit,
    cors,
    health,
    openapi,
    endpoints,
    requestBody,
    authFree,
    authApiKey,
    authX402,
    authX402Exact,
    parameters,
    audit,
    cache,
    upstreamRetry,
    upstreamOauth2,
    upstreamMirrors,
    upstreamBreaker,
    expect,
    upstreamShare,
    upstreamQuota,
    callApi,
    encodeAbiPlugin,
    encodeRaw,
    receipt,
    fhe,
    signerJsonRpc,
    signerWeb3signer,
    signerAwsKms,
    signEip191(signing),
    tlsProof,
    modeSync,
    modeAsync,
    modeStream,
    ...beside,
  ];
}
