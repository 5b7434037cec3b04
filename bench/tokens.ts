/**
 * Prints the tokens of the tools of each example beside those of four reference servers: what a model reads (names, descriptions and
 * arguments), and what crosses the wire (the whole `tools/list`). `bench/peers/tokens.mjs` counts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { connect } from 'troupe/client';
import { installPeers } from './peers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
type Target = Parameters<typeof connect>[0];

/** Longest start of a server, in milliseconds. */
const START_MS = 60_000;

const REFERENCES = ['everything', 'filesystem', 'memory', 'sequential-thinking'] as const;

/** Connects to each server in turn, counts, and prints a table in Markdown. Without the peers it says so and prints nothing. */
export async function showTokens(): Promise<void> {
  if (!installPeers() || !existsSync(join(ROOT, 'bench/peers/node_modules/js-tiktoken/package.json'))) {
    process.stderr.write('tokens: js-tiktoken is not there. Run "npm ci" in bench/peers\n');
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), 'tokens-'));
  const program = (path: string, ...args: readonly string[]): Target => ({
    command: process.execPath,
    args: [...args, join(ROOT, path), ...(path.includes('filesystem') ? [folder] : [])],
    env: { MEMORY_FILE_PATH: join(folder, 'memory.json') },
  });
  const example = async (name: string): Promise<Target> => {
    const path = `examples/${name}/server.ts`;
    const { default: server } = await import(pathToFileURL(join(ROOT, path)).href);
    return server ?? program(path, '--import', 'tsx');
  };
  const servers: readonly (readonly [string, () => Promise<Target> | Target])[] = [
    ['examples/hello', () => program('examples/hello/server.ts', '--import', 'tsx')],
    ...['order', 'refund', 'nodes', 'everything'].map((name) => [`examples/${name}`, () => example(name)] as const),
    ...REFERENCES.map(
      (name) =>
        [
          `@modelcontextprotocol/server-${name}`,
          () => program(`bench/peers/node_modules/@modelcontextprotocol/server-${name}/dist/index.js`),
        ] as const,
    ),
  ];
  const listed: { readonly name: string; readonly tools: readonly unknown[] }[] = [];
  try {
    for (const [name, target] of servers) listed.push({ name, tools: await toolsOf(await target()) });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const counted = spawnSync(process.execPath, [join(ROOT, 'bench/peers/tokens.mjs')], {
    input: JSON.stringify(listed),
    encoding: 'utf8',
    timeout: START_MS,
  });
  if (counted.status !== 0) throw new Error(`tokens: ${counted.stderr.slice(0, 500)}`);
  process.stdout.write(`${counted.stdout}\n`);
}

async function toolsOf(target: Target): Promise<readonly unknown[]> {
  const client = await connect(target, { connectMs: START_MS, waitMs: START_MS, log() {} });
  try {
    return await client.tools();
  } finally {
    await client.close();
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await showTokens();
  // Examples in this process have timers.
  process.exit();
}
