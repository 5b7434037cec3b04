/** Opens web pages in the browser of the user who runs the process. */
import { spawn } from 'node:child_process';

/** The program that opens a URL on each platform, and its arguments before the URL. None of them is a shell. */
const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/**
 * Opens an http or https URL. Other users of this machine can see the URL in the process list for a moment.
 *
 * @param failed called once if no browser was started, or if the URL has another scheme
 * @example openInBrowser(new URL('https://example.com/sign-in'), () => console.error('open the page yourself'));
 */
export function openInBrowser(url: URL, failed: () => void): void {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return failed();
  const [program, ...before] = OPENERS[process.platform] ?? ['xdg-open'];
  try {
    const child = spawn(program, [...before, url.href], { stdio: 'ignore', detached: true, windowsHide: true });
    child.once('error', failed);
    child.once('exit', (code) => {
      if (code !== 0) failed();
    });
    child.unref();
  } catch {
    failed();
  }
}
