/** The connection of a page to its host: the handshake, the result that opened the page, calls to the server, and the watch. */
import type { DisplayMode, Host } from './host-context.ts';
import { type Channel, hostLink, type Members, membersOf, ViewError } from './host-link.ts';
import { type ServerProxy, serverProxy, type ToolResult } from './server-proxy.ts';
import type { Surroundings } from './surroundings.ts';
import { type WatchOptions, watch } from './watch.ts';

/** The extension's revision that views speak. */
const PROTOCOL_VERSION = '2026-01-26';

/** Milliseconds that a host has to answer the handshake. */
const HANDSHAKE_MS = 30_000;
/** Milliseconds for a request to the host itself, which may ask its user. */
const ASK_MS = 120_000;
/** Milliseconds that the listeners of a teardown have before it is answered. */
const TEARDOWN_MS = 1_000;

/** The notifications of a view, each with its value. */
export interface ViewEvents {
  /** The arguments of the tool call that opens the view, as far as a model has written them. Comes any number of times. */
  partial: Members;
  /** The arguments of the tool call that opened the view. */
  input: Members;
  /** The result of that call. A host may send it again. */
  result: ToolResult;
  /** The call was cancelled, for this reason. */
  cancelled: string;
  /** The host described its surroundings again. */
  host: Host;
  /** The host removes the view. It waits a second for what the listeners return. */
  teardown: undefined;
}

/** A function that gets the value of a notification. */
export type Listener<E extends keyof ViewEvents> = (value: ViewEvents[E]) => unknown;

/** The page, as it introduces itself to the host. */
export interface PageInfo {
  readonly name: string;
  readonly version: string;
  readonly displayModes: readonly DisplayMode[];
}

/** A connection after its handshake. Notifications arrive in later turns of the event loop: a listener that is added at once misses none. */
export interface Connection extends Pick<ServerProxy, 'call' | 'read'> {
  readonly host: Host;
  /** Aborted when the view is closed. */
  readonly signal: AbortSignal;
  /** @returns a function that stops the listener */
  on<E extends keyof ViewEvents>(event: E, listener: Listener<E>): () => void;
  watch<T>(uri: string, options?: WatchOptions): AsyncGenerator<T, void>;
  /** Makes a request to the host itself. @throws {ViewError} if the host refuses it, also by `isError` */
  ask(method: string, params: Members): Promise<Members>;
  notify(method: string, params: Members): void;
  close(): void;
}

/** Shakes hands with the host. @throws {ViewError} if the host refuses or does not answer */
export async function connect(
  channel: Channel,
  surroundings: Surroundings,
  { name, version, displayModes }: PageInfo,
): Promise<Connection> {
  const ended = new AbortController();
  const listeners: { readonly [E in keyof ViewEvents]: Set<Listener<E>> } = {
    partial: new Set(),
    input: new Set(),
    result: new Set(),
    cancelled: new Set(),
    host: new Set(),
    teardown: new Set(),
  };
  let host: Host = { name: '', version: '', capabilities: {} };
  let stopSize = (): void => {};

  const emit = <E extends keyof ViewEvents>(event: E, value: ViewEvents[E]): void => {
    for (const listener of listeners[event]) listener(value);
  };
  /** A change of the surroundings has only the members that changed. */
  const merge = (context: Partial<Host>): void => {
    host = { ...host, ...context };
    surroundings.applyLooks(context);
  };
  const link = hostLink(channel, surroundings, {
    request(method) {
      if (method === 'ping') return Promise.resolve({});
      if (method !== 'ui/resource-teardown') return undefined;
      const finished = [...listeners.teardown].map(async (listener) => listener(undefined));
      const late = new Promise<void>((resolve) => surroundings.after(TEARDOWN_MS, resolve));
      const answered = Promise.race([Promise.allSettled(finished), late]).then(() => ({}));
      // The link sends the answer first.
      void answered.then(() => surroundings.after(0, close));
      return answered;
    },
    notification(method, params) {
      switch (method.replace('ui/notifications/', '')) {
        case 'tool-input-partial':
          return emit('partial', membersOf(params.arguments));
        case 'tool-input':
          return emit('input', membersOf(params.arguments));
        case 'tool-result':
          return emit('result', server.result(params));
        case 'tool-cancelled':
          return emit('cancelled', String(params.reason ?? ''));
        case 'host-context-changed':
          merge(params);
          return emit('host', host);
      }
    },
  });
  const server = serverProxy(link);
  const { signal } = ended;
  function close(): void {
    ended.abort();
    stopSize();
    link.close();
  }

  try {
    const { hostInfo, hostCapabilities, hostContext } = await link.request(
      'ui/initialize',
      {
        protocolVersion: PROTOCOL_VERSION,
        appInfo: { name, version },
        appCapabilities: { availableDisplayModes: displayModes },
      },
      HANDSHAKE_MS,
    );
    merge({ ...membersOf(hostContext), ...membersOf(hostInfo), capabilities: membersOf(hostCapabilities) });
  } catch (error) {
    close();
    throw error;
  }
  link.notify('ui/notifications/initialized', {});
  stopSize = surroundings.observeSize((width, height) =>
    link.notify('ui/notifications/size-changed', { width, height }),
  );
  return {
    ...server,
    get host() {
      return host;
    },
    signal,
    on(event, listener) {
      listeners[event].add(listener);
      return () => void listeners[event].delete(listener);
    },
    watch: (uri, options = {}) => watch(server, surroundings, uri, signal, options),
    async ask(method, params) {
      const answer = await link.request(method, params, ASK_MS);
      if (answer.isError === true) throw new ViewError('refused', `${method}: refused`);
      return answer;
    },
    notify: link.notify,
    close,
  };
}
