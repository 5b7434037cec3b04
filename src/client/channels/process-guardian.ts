/**
 * Ends the child processes of this process when it dies, however it dies: a shell that waits for the end of its input,
 * and then ends each process group that was announced to it.
 */
import { type ChildProcess, spawn } from 'node:child_process';

/**
 * The shell reads `+PID` and `-PID` lines. When its input ends, children have two seconds to notice the end of theirs,
 * then get TERM, and two seconds later KILL. The built-in `kill` of dash accepts a negative id after `-s` only.
 */
const SCRIPT = `groups=' '
while read -r line; do
  case $line in
    +*) groups="$groups\${line#+} " ;;
    -*) rest=\${groups#* \${line#-} }; [ "$rest" = "$groups" ] || groups="\${groups%% \${line#-} *} $rest" ;;
  esac
done
alive() { for group in $groups; do kill -s 0 -- "-$group" 2>/dev/null && return 0; done; return 1; }
linger() { for tick in 1 2 3 4 5 6 7 8; do alive || exit 0; sleep 0.25; done; }
linger
for group in $groups; do kill -s TERM -- "-$group" 2>/dev/null; done
linger
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
`;

/** One guardian serves all children of this process. Windows has no process groups, and no guardian. */
let guardian: ChildProcess | undefined;
const groups = new Set<number>();

/** Guards the process group of a child from now on. */
export function guardGroup(pid: number): void {
  if (process.platform === 'win32') return;
  if (groups.size === 0) process.on('exit', endAll);
  groups.add(pid);
  if (guardian) {
    guardian.stdin?.write(`+${pid}\n`);
    return;
  }
  const started = spawn('/bin/sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guardian = started;
  started.on('error', () => {});
  // A guardian that was killed is replaced when the next child starts.
  started.on('exit', () => {
    if (guardian === started) guardian = undefined;
  });
  started.unref();
  const { stdin } = started;
  if (!stdin) return;
  stdin.on('error', () => {});
  // Open pipes keep a process alive; this one only has to end with it.
  if ('unref' in stdin && typeof stdin.unref === 'function') stdin.unref();
  for (const group of groups) stdin.write(`+${group}\n`);
}

/** The process group has ended. */
export function releaseGroup(pid: number): void {
  if (!groups.delete(pid)) return;
  guardian?.stdin?.write(`-${pid}\n`);
  if (groups.size > 0) return;
  process.off('exit', endAll);
  guardian?.stdin?.end();
  guardian = undefined;
}

/** Signals a process group. @returns false if it does not exist any more */
export function signalGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): boolean {
  try {
    if (process.platform === 'win32') {
      // TERM does not exist on Windows; /T ends the children, too.
      const args = ['/pid', String(pid), '/T', ...(signal === 'SIGKILL' ? ['/F'] : [])];
      spawn('taskkill', args, { stdio: 'ignore' }).on('error', () => {});
      return true;
    }
    process.kill(-pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** True while a process of the group exists. */
export function groupExists(pid: number): boolean {
  if (process.platform === 'win32') return false;
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}

function endAll(): void {
  // An exit is synchronous: TERM now; the guardian kills what remains.
  for (const group of groups) signalGroup(group, 'SIGTERM');
}
