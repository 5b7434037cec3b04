/** The option `events` of a server, and its checks. */
import * as option from '../../core/protocol/option-rows.ts';

/** Deliveries to the callbacks of clients (docs/events.md). */
export interface CallbackOptions {
  /**
   * Origins that clients may name besides public https addresses, such as `http://127.0.0.1:8080` while you develop. Default: none.
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
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /** The events of the server, besides their types. Experimental. */
    readonly events?: EventServerOptions | undefined;
  }
}

const ORIGINS = option.expected(
  'a list of origins such as ["http://127.0.0.1:8080"]',
  (value) => option.areStrings(value) && value.every((each) => URL.canParse(each) && new URL(each).origin === each),
);
const CALLBACKS = option.group('false, or options such as { allow: ["http://127.0.0.1:8080"] }', {
  ...{ allow: ORIGINS, local: option.flag, noExpiry: option.flag },
});

export const EVENTS_OPTIONS = {
  events: option.group('options such as { callbacks: false }', {
    callbacks: (value: unknown) => (value === false ? undefined : CALLBACKS(value)),
  }),
};
