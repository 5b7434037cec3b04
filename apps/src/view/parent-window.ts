/** The messages to and from the window that frames this one, and no other. */
import { type Channel, ViewError } from './host-link.ts';

/** @throws {ViewError} if this page is in no frame */
export function parentWindow(): Channel {
  if (parent === window) throw new ViewError('refused', 'this page has no host');
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
