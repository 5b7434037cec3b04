/** The option `events` of a server, and its checks. */
import * as option from '../../core/protocol/option-rows.ts';
import { isCallbackOrigin } from './callback-origins.ts';
import type { EventsCodes } from './event-wire.ts';

/** Deliveries to the callbacks of clients (docs/events.md). */
export interface CallbackOptions {
  /**
   * Origins that clients may name besides public https addresses, such as `http://127.0.0.1:8080` while you develop, or
   * `http://127.0.0.1:*` for every port of a loopback address. Default: none, and all loopback addresses under `troupe dev`.
   */
  readonly allow?: readonly string[] | undefined;
  /** True if the user of this machine, a client over stdio or a socket, may subscribe. Default: false. */
  readonly local?: boolean | undefined;
  /** True if a client may subscribe without an expiry, with a durable store. Default: false. */
  readonly noExpiry?: boolean | undefined;
}

export interface EventServerOptions {
  /** False: the server delivers to no webhooks. */
  readonly callbacks?: CallbackOptions | false | undefined;
  /**
   * The error codes of `events/*`. `auto` (default): a client that declares the extension gets those of SEP-3415, another client those
   * of the design sketch. `sep` or `sketch`: every client gets these.
   */
  readonly codes?: EventsCodes | undefined;
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** The events of the server, besides their types. Experimental. */
    readonly events?: EventServerOptions | undefined;
  }
}

const ORIGINS = option.expected(
  'origins such as ["http://127.0.0.1:8080"]',
  (value) => option.areStrings(value) && value.every(isCallbackOrigin),
);
const CALLBACKS = option.group('false, or options such as { local: true }', {
  ...{ allow: ORIGINS, local: option.flag, noExpiry: option.flag },
});

export const EVENTS_OPTIONS = {
  events: option.group('options such as { callbacks: false }', {
    callbacks: (value: unknown) => (value === false ? undefined : CALLBACKS(value)),
    codes: option.oneOf('auto', 'sep', 'sketch'),
  }),
};
