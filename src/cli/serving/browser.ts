/** `--open`: shows an address in the user's browser. */
import { spawn } from 'node:child_process';
import { say } from '../usage.ts';

/** What opens an address: a program, and what comes before the address. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // The first thing in quotes would be the title of a window.
  win32: ['cmd', '/c', 'start', '""'],
};

/**
 * Says so where there is no browser. Other users of this machine who may list its processes see the address for a moment.
 *
 * @param url one of ours: its characters mean nothing to a shell
 */
export function openBrowser(command: string, url: string): void {
  const failed = (): void => say(`troupe ${command}: --open: no browser can be started: open the address by hand`);
  if (!/^http:\/\/127\.0\.0\.1:\d+\/[\w#=./-]*$/.test(url)) return failed();
  const [program, ...before] = OPENERS[process.platform] ?? ['xdg-open'];
  try {
    const child = spawn(program, [...before, url], { stdio: 'ignore', detached: true, windowsHide: true });
    child.once('error', failed);
    child.once('exit', (code) => {
      if (code !== 0) failed();
    });
    child.unref();
  } catch {
    failed();
  }
}
