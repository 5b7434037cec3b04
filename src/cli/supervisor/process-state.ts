/** Reads from the system whether another process is stopped, or paused by a debugger. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export type ProcessState =
  | 'running'
  /** By SIGSTOP or another stop signal. */
  | 'stopped'
  /** By a native debugger. */
  | 'traced';

/** The time limit for `ps`, in milliseconds. */
const PS_MS = 1_000;

/** @returns `running` also if the system does not report the state, as on Windows */
export function processState(pid: number): ProcessState {
  const letter = stateOf(pid);
  if (letter === 'T') return 'stopped';
  return letter === 't' || letter === 'X' ? 'traced' : 'running';
}

/** Returns the state letter of ps(1). */
function stateOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The state is the third field. The second, in parentheses, may contain spaces.
    return stat.slice(stat.lastIndexOf(')') + 2).charAt(0);
  } catch {
    if (process.platform === 'linux' || process.platform === 'win32') return '';
  }
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8', timeout: PS_MS });
  const flags = stdout?.trim() ?? '';
  return flags.includes('X') ? 'X' : flags.charAt(0);
}
