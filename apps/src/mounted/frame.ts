/** Puts a translation between a page and the window that frames it. It runs before every script of the page. */
import type { Messages } from './messages.ts';

/**
 * From now on, `window.parent` translates what the page posts, and each message of the host is translated before a listener of the
 * page gets it.
 *
 * This is no boundary: a page that looks for the real window finds it. What a view may call is the host's to decide.
 */
export function translateFrame(messages: Messages): void {
  const host = window.parent;
  if (host === window) return;
  const post = (message: unknown, ...rest: readonly unknown[]): void =>
    Reflect.apply(host.postMessage, host, [messages.toHost(message), ...rest]);
  const relay = new Proxy(Object.create(null), {
    get: (_, member) => (member === 'postMessage' ? post : Reflect.get(host, member)),
    has: (_, member) => Reflect.has(host, member),
  });
  Object.defineProperty(window, 'parent', { value: relay, enumerable: true });
  addEventListener(
    'message',
    (event) => {
      if (event.source !== host) return;
      const data = messages.toPage(event.data);
      // Pages compare the source with their parent.
      Object.defineProperties(event, { data: { value: data }, source: { value: relay } });
    },
    true,
  );
}
