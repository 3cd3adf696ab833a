/** A relayer or a node that cannot be used is named in the log, and nothing is signed. */
import { faults } from '../support/upstream.ts';
import { assertFailures, type Failure } from './failures.ts';
import { paths } from './relayer.ts';
import { API_KEY } from './service.ts';

const cases: readonly Failure[] = [
  {
    name: 'a relayer that is down',
    sabotage: (relayer) => void relayer.close(),
    reason: /^connecting to the relayer: Relayer didn't response correctly\. Bad JSON, because: .*\bECONNREFUSED\b.*$/,
  },
  {
    name: 'a relayer that refuses the API key',
    sabotage: ({ upstream }) => upstream.json(paths.keyUrl, { message: API_KEY }, 401),
    reason: /^connecting to the relayer: HTTP error! status: 401$/,
  },
  {
    name: 'a relayer that answers in HTML',
    sabotage: ({ upstream }) => upstream.on(paths.keyUrl, faults.html()),
    reason: /^connecting to the relayer: Relayer didn't return a JSON, because: .+$/,
  },
  {
    name: 'a relayer that resets the connection',
    sabotage: ({ upstream }) => upstream.on(paths.keyUrl, faults.reset()),
    reason:
      /^connecting to the relayer: Relayer didn't response correctly\. Bad JSON, because: fetch failed, because: read ECONNRESET$/,
  },
  {
    name: 'a relayer that redirects (the API key would travel along)',
    sabotage: ({ upstream }) => upstream.on(paths.keyUrl, faults.redirect('/elsewhere')),
    reason:
      /^connecting to the relayer: Relayer didn't response correctly\. Bad JSON, because: fetch failed, because: unexpected redirect$/,
  },
  {
    name: 'a relayer that never ends its answer',
    sabotage: ({ upstream }) => upstream.on(paths.keyUrl, faults.endless()),
    reason:
      /^connecting to the relayer: Relayer didn't return a JSON, because: the answer has more than 33554432 bytes$/,
  },
  {
    name: 'a key that is not there',
    sabotage: ({ upstream }) => upstream.on(paths.publicKey, faults.empty(404)),
    reason:
      /^connecting to the relayer: Impossible to fetch public key: wrong relayer url, because: HTTP error! status: 404 on http:\/\/127\.0\.0\.1:\d+\/blob\/public$/,
  },
  {
    name: 'a reference string that is none',
    sabotage: ({ upstream }) => upstream.text(paths.crs, 'x'.repeat(1000)),
    reason: /^connecting to the relayer: .*deserialization failed.*$/,
  },
  {
    name: 'an RPC that answers in HTML',
    sabotage: ({ upstream }) => upstream.on(paths.rpc, faults.html()),
    reason: /^connecting to the relayer: settings\.fhe\.rpcUrl, eth_chainId: the answer is no JSON$/,
  },
  {
    name: 'an RPC of another chain',
    sabotage: (relayer) => relayer.moveTo(1n),
    reason: /^connecting to the relayer: Invalid config chainId 11155111\. Expecting 1$/,
  },
];

assertFailures('what goes wrong while keys and signers are fetched', cases);
