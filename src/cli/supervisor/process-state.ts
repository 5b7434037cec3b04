/** What the system says of another process: whether it is stopped, or held by a debugger. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export type ProcessState =
  | 'running'
  /** By SIGSTOP or its siblings. */
  | 'stopped'
  /** By a debugger of native code. */
  | 'traced';

/** Longest that `ps` may take, in milliseconds. */
const PS_MS = 1_000;

/** @returns `running` also where the system does not tell, as on Windows */
export function processState(pid: number): ProcessState {
  const letter = stateOf(pid);
  if (letter === 'T') return 'stopped';
  return letter === 't' || letter === 'X' ? 'traced' : 'running';
}

/** One letter, as ps(1) has it. */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The third field; the second may hold spaces, in brackets.
    return stat.slice(stat.lastIndexOf(')') + 2).charAt(0);
  } catch {
    if (process.platform === 'linux' || process.platform === 'win32') return '';
  }
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8', timeout: PS_MS });
  const flags = stdout?.trim() ?? '';
  return flags.includes('X') ? 'X' : flags.charAt(0);
}
