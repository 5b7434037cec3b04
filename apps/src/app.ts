/** The library of a page that runs in a host: `troupe/app`. */
import { type Channel, ViewError } from './view/host-link.ts';
import { browserWindow } from './view/surroundings.ts';
import { type ToolTypes, View, type ViewOptions } from './view/view.ts';

export type { DisplayMode, Host, HostCapabilities, HostContext } from './view/host-context.ts';
export type { CallOptions, ContentBlock, ResourceContents, ToolResult } from './view/server-proxy.ts';
export type { ToolTypes, ViewEvents, ViewOptions } from './view/view.ts';
export type { WatchOptions } from './view/watch.ts';
export { type View, ViewError };

/**
 * Connects a page to the host whose frame shows it. Afterwards the document has the theme, the language and the style variables of
 * the host, and the host knows the size of the document.
 *
 * @param Tools the arguments and results of the tools that the page calls, by their names
 * @throws {ViewError} if the page is not in a frame, or the host does not answer within 30 seconds
 * @example
 * const view = await connectView();
 * view.on('result', ({ structuredContent }) => draw(structuredContent));
 * await view.call('board_move', { card: 7, to: 'done' });
 */
export async function connectView<Tools extends ToolTypes = ToolTypes>(
  options: ViewOptions = {},
): Promise<View<Tools>> {
  if (parent === window) throw new ViewError('refused', 'this page is in no frame, so it has no host');
  return View.open<Tools>(parentWindow(), browserWindow(), options);
}

/** The messages to and from the window that frames this one, and no other. */
function parentWindow(): Channel {
  let origin: string | undefined;
  return {
    // The host's origin is known with its first message. A sandboxed frame has none.
    send: (message) => parent.postMessage(message, origin === undefined || origin === 'null' ? '*' : origin),
    receive(listener) {
      const receive = (event: MessageEvent): void => {
        if (event.source !== parent) return;
        origin ??= event.origin;
        if (event.origin === origin) listener(event.data);
      };
      addEventListener('message', receive);
      return () => removeEventListener('message', receive);
    },
  };
}
