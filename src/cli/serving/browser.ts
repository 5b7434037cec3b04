/** `--open`: opens a URL in the user's browser. */
import { spawn } from 'node:child_process';
import { say } from '../usage.ts';

/** The program that opens a URL on each platform, and its arguments before the URL. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  // `start` takes the first quoted argument as a window title.
  win32: ['cmd', '/c', 'start', '""'],
};

/**
 * Reports a failure on stderr. Other users of this machine can see the URL in the process list for a moment.
 *
 * @param url an inspector's URL; any other is rejected, because a shell might interpret its characters
 */
export function openBrowser(command: string, url: string): void {
  const failed = (): void => say(`troupe ${command}: --open: cannot start a browser: open the URL yourself`);
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
