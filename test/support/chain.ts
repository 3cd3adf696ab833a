import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  type AbstractProvider,
  JsonRpcProvider,
  Network,
  type Subscriber,
  type Subscription,
  type TransactionReceipt,
} from 'ethers';
import { endsWith, type Lifetime } from './lifetime.ts';

/** A real EVM node on loopback, with ten rich unlocked accounts. */
export interface Chain {
  readonly url: string;
  readonly chainId: number;
  readonly provider: JsonRpcProvider;
  stop(): Promise<void>;
}

/** The binary of the package for this platform, or a Foundry installation's. */
export function anvil(): string {
  try {
    const manifest = createRequire(import.meta.url).resolve('@foundry-rs/anvil-linux-amd64/package.json');
    const file = join(dirname(manifest), 'bin', 'anvil');
    if (existsSync(file)) return file;
  } catch {
    // No package for this platform.
  }
  return 'anvil';
}

/** Asks for a receipt until there is one. */
class ReceiptSubscriber implements Subscriber {
  #timer: NodeJS.Timeout | undefined;
  readonly #ask: () => Promise<unknown>;

  constructor(provider: AbstractProvider, hash: string) {
    this.#ask = async () => {
      const receipt = await provider.getTransactionReceipt(hash);
      if (receipt !== null) await provider.emit(hash, receipt);
    };
  }

  start(): void {
    this.#timer = setInterval(() => void this.#ask().catch(() => undefined), 50);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  pause(): void {
    this.stop();
  }

  resume(): void {
    this.start();
  }
}

/**
 * A block for each transaction, and none without: ethers asks for the receipt once and then waits for the next block. On a busy
 * machine the block comes between the two, and no other one follows.
 */
class ChainProvider extends JsonRpcProvider {
  override _getSubscriber(subscription: Subscription): Subscriber {
    return subscription.type === 'transaction'
      ? new ReceiptSubscriber(this, subscription.hash)
      : super._getSubscriber(subscription);
  }

  override waitForTransaction(hash: string): Promise<TransactionReceipt | null> {
    return new Promise((resolve) => void this.once(hash, resolve));
  }
}

/**
 * Starts a chain on a free port.
 *
 * @param options further arguments for anvil, such as `['--block-time', '1']`.
 */
export async function startChain(chainId = 31337, options: readonly string[] = []): Promise<Chain> {
  const args = ['--host', '127.0.0.1', '--port', '0', '--chain-id', String(chainId), ...options];
  const child = spawn(anvil(), args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const gone = once(child, 'exit');
  const url = await new Promise<string>((resolve, reject) => {
    let text = '';
    child.on('error', (error) => reject(new Error('anvil is needed: https://getfoundry.sh', { cause: error })));
    child.on('exit', (code) => reject(new Error(`anvil ended with exit code ${code}: ${text}`)));
    // Read to the end: a pipe that nobody reads would block the node.
    child.stdout.on('data', (chunk) => {
      if (text.length < 100_000) text += String(chunk);
      const [, address] = /Listening on (\S+)/.exec(text) ?? [];
      if (address !== undefined) resolve(`http://${address}`);
    });
  });
  const network = Network.from(chainId);
  const provider = new ChainProvider(url, network, { staticNetwork: network, batchMaxCount: 1, cacheTimeout: -1 });
  provider.pollingInterval = 50;
  // Blocks have whole seconds: one of the second in which a service has started would be older than its record of payments.
  await provider.send('evm_increaseTime', [2]);
  return {
    url,
    chainId,
    provider,
    stop: async () => {
      provider.destroy();
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** A chain that ends with the test or the suite. */
export function chainFor(lifetime: Lifetime, ...given: Parameters<typeof startChain>): Promise<Chain> {
  return endsWith(lifetime, startChain(...given));
}
