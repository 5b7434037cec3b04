/** The origins to which a server may deliver besides public https addresses. */
import type { ServerOptions } from '../../core/server/options.ts';

/** The loopback origins of every port: those that `troupe dev` allows. */
const LOOPBACK = ['127.0.0.1', 'localhost', '[::1]'].flatMap((host) => [`http://${host}:*`, `https://${host}:*`]);
const PORT = /:\d+$/;

/** True for an origin such as `http://127.0.0.1:8080`, and for a loopback origin of every port, such as `http://127.0.0.1:*`. */
export function isCallbackOrigin(text: string): boolean {
  return LOOPBACK.includes(text) || (!text.includes('*') && URL.canParse(text) && new URL(text).origin === text);
}

/** A set of origins, one of which may stand for every port of its host. */
export class CallbackOrigins extends Set<string> {
  override has(origin: string): boolean {
    return super.has(origin) || super.has(`${origin.replace(PORT, '')}:*`);
  }
}

/** Options with which a program of this machine may subscribe callbacks of this machine, unless the program says otherwise: for `troupe dev`. */
export function forDevelopment(events: NonNullable<ServerOptions['events']> = {}): ServerOptions['events'] {
  const { callbacks = {} } = events;
  if (callbacks === false) return events;
  return { ...events, callbacks: { local: true, ...callbacks, allow: [...(callbacks.allow ?? []), ...LOOPBACK] } };
}
