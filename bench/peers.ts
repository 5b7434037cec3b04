/** Installs the peers, with the versions that `bench/peers/package-lock.json` names, where they are not there. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { hasPeers } from './contenders.ts';

const LONGEST_MS = 300_000;

/** @returns whether they are there; it says why, when they cannot be */
export function installPeers(): boolean {
  if (hasPeers()) return true;
  process.stderr.write('installing the peers (npm ci in bench/peers)\n');
  const { status, stderr, error } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(new URL('./peers', import.meta.url)),
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: LONGEST_MS,
  });
  if (status === 0 && hasPeers()) return true;
  const why = error?.message ?? stderr.trim().split('\n').slice(0, 3).join(' ');
  process.stderr.write(`the peers could not be installed, and are left out; npm ci in bench/peers says: ${why}\n`);
  return false;
}
