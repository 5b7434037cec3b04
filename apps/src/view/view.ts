/** A view that is connected to its host. */
import type { DisplayMode, Host, HostContext } from './host-context.ts';
import { type Channel, HostLink, isMembers, type Members, ViewError } from './host-link.ts';
import {
  type CallOptions,
  type ContentBlock,
  type ResourceContents,
  ServerProxy,
  type ToolResult,
} from './server-proxy.ts';
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

/** The arguments and results of the tools that a view calls, by their names. */
export type ToolTypes = Readonly<Record<string, { readonly input?: object; readonly output?: unknown }>>;

/** The notifications of a view, each with its value. */
export interface ViewEvents {
  /** The arguments of the tool call that opened the view; several times while a model writes them. */
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

type Listener<E extends keyof ViewEvents> = (value: ViewEvents[E]) => unknown;

export interface ViewOptions {
  /** The name and version of the page, which a host may show. */
  readonly name?: string;
  readonly version?: string;
  /** The display modes in which the page works; default inline and fullscreen. */
  readonly displayModes?: readonly DisplayMode[];
}

export class View<Tools extends ToolTypes = ToolTypes> {
  readonly #link: HostLink;
  readonly #server: ServerProxy;
  readonly #surroundings: Surroundings;
  readonly #listeners: { readonly [E in keyof ViewEvents]: Set<Listener<E>> } = {
    input: new Set(),
    result: new Set(),
    cancelled: new Set(),
    host: new Set(),
    teardown: new Set(),
  };
  readonly #ended = new AbortController();
  #stopSize = (): void => {};
  #host: Host = { name: '', version: '', capabilities: {} };
  #input: Members | undefined;
  #isComplete = false;
  #result: ToolResult | undefined;
  #cancelled: string | undefined;

  private constructor(channel: Channel, surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.#link = new HostLink(channel, surroundings, {
      request: (method) => this.#answer(method),
      notification: (method, params) => this.#receive(method, params),
    });
    this.#server = new ServerProxy(this.#link);
  }

  /** @throws {ViewError} if the host refuses the handshake or does not answer */
  static async open<Tools extends ToolTypes>(
    channel: Channel,
    surroundings: Surroundings,
    { name = 'view', version = '1', displayModes = ['inline', 'fullscreen'] }: ViewOptions,
  ): Promise<View<Tools>> {
    const view = new View<Tools>(channel, surroundings);
    try {
      await view.#shakeHands(name, version, displayModes);
      return view;
    } catch (error) {
      view.close();
      throw error;
    }
  }

  /** The arguments of the call that opened the view; undefined before the host sends them. */
  get input(): Members | undefined {
    return this.#input;
  }

  /** True if `input` is all of the arguments; false while a model writes them. */
  get isInputComplete(): boolean {
    return this.#isComplete;
  }

  /** The result of the call that opened the view; undefined before the host sends it. */
  get result(): ToolResult | undefined {
    return this.#result;
  }

  /** The reason for which that call was cancelled; undefined if it was not. */
  get cancelled(): string | undefined {
    return this.#cancelled;
  }

  /** The host, with the theme, language, dimensions and capabilities that it declared. */
  get host(): Host {
    return this.#host;
  }

  /** Aborted when the view is closed. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Calls `listener` for each notification of one kind. @returns a function that stops it */
  on<E extends keyof ViewEvents>(event: E, listener: Listener<E>): () => void {
    this.#listeners[event].add(listener);
    return () => void this.#listeners[event].delete(listener);
  }

  /**
   * Calls a tool of the server.
   * @throws {ViewError} if the host refuses the call or does not answer. A failed call is a result with `isError`.
   * @example const { structuredContent } = await view.call('board_move', { card: 7, to: 'done' });
   */
  call<Name extends keyof Tools & string>(
    tool: Name,
    args?: Tools[Name]['input'],
    options?: CallOptions,
  ): Promise<ToolResult<Tools[Name]['output']>> {
    // The server checks its results by the schema of the tool.
    return this.#server.call(tool, args, options) as Promise<ToolResult<Tools[Name]['output']>>;
  }

  /**
   * Reads a resource of the server.
   * @throws {ViewError} if the host refuses it or does not answer
   */
  read(uri: string, options?: CallOptions): Promise<readonly ResourceContents[]> {
    return this.#server.read(uri, options);
  }

  /**
   * Yields the JSON of a resource, now and after each change: from `troupe_watch`, which waits at the server, or from a read
   * every 5 seconds where the host does not proxy that tool. Nothing is asked while no one can see the view. Ends when the view
   * is closed.
   * @throws {ViewError} if the host proxies neither
   * @example for await (const board of view.watch('board://main')) draw(board);
   */
  watch<T = unknown>(uri: string, options: WatchOptions = {}): AsyncGenerator<T, void> {
    return watch<T>(this.#server, this.#surroundings, uri, this.signal, options);
  }

  /**
   * Gives the model a text with the next message of its user. It replaces the last one.
   * @throws {ViewError} if the host does not offer it
   */
  async tellModel(content: string | readonly ContentBlock[], structuredContent?: Members): Promise<void> {
    await this.#ask('ui/update-model-context', {
      content: blocks(content),
      ...(structuredContent && { structuredContent }),
    });
  }

  /** Writes a message in the name of the user. @throws {ViewError} if the host refuses it */
  async say(content: string | readonly ContentBlock[]): Promise<void> {
    await this.#ask('ui/message', { role: 'user', content: blocks(content) });
  }

  /** Opens a link in the browser of the user. @throws {ViewError} if the host refuses it */
  async open(url: string): Promise<void> {
    await this.#ask('ui/open-link', { url });
  }

  /** Asks for another display mode. @returns the mode that the host gave, which may be another */
  async mode(mode: DisplayMode): Promise<DisplayMode> {
    const { mode: given } = await this.#ask('ui/request-display-mode', { mode });
    return given === 'inline' || given === 'fullscreen' || given === 'pip' ? given : mode;
  }

  /** Writes to the log of the host. */
  log(level: 'debug' | 'info' | 'warning' | 'error', data: unknown): void {
    this.#link.notify('notifications/message', { level, data });
  }

  /** Ends every watch, fails what is pending, and sends and receives no more. */
  close(): void {
    this.#ended.abort();
    this.#stopSize();
    this.#link.close();
  }

  async #shakeHands(name: string, version: string, displayModes: readonly DisplayMode[]): Promise<void> {
    const { hostInfo, hostCapabilities, hostContext } = await this.#link.request(
      'ui/initialize',
      {
        protocolVersion: PROTOCOL_VERSION,
        appInfo: { name, version },
        appCapabilities: { availableDisplayModes: displayModes },
      },
      HANDSHAKE_MS,
    );
    const info = isMembers(hostInfo) ? hostInfo : {};
    const capabilities = isMembers(hostCapabilities) ? hostCapabilities : {};
    this.#host = { name: String(info.name ?? ''), version: String(info.version ?? ''), capabilities };
    this.#merge(isMembers(hostContext) ? hostContext : {});
    this.#link.notify('ui/notifications/initialized', {});
    this.#stopSize = this.#surroundings.observeSize((width, height) =>
      this.#link.notify('ui/notifications/size-changed', { width, height }),
    );
  }

  /** A request to the host itself. An answer with `isError` is a refusal, too. */
  async #ask(method: string, params: Members): Promise<Members> {
    const result = await this.#link.request(method, params, ASK_MS);
    if (result.isError === true) throw new ViewError('refused', `the host refused ${method}`);
    return result;
  }

  #answer(method: string): Promise<Members> | undefined {
    if (method === 'ping') return Promise.resolve({});
    if (method !== 'ui/resource-teardown') return undefined;
    const finished = [...this.#listeners.teardown].map(async (listener) => listener(undefined));
    const late = new Promise<void>((resolve) => this.#surroundings.after(TEARDOWN_MS, resolve));
    const answered = Promise.race([Promise.allSettled(finished), late]).then(() => ({}));
    // The link sends the answer first.
    void answered.then(() => this.#surroundings.after(0, () => this.close()));
    return answered;
  }

  #receive(method: string, params: Members): void {
    switch (method) {
      case 'ui/notifications/tool-input-partial':
      case 'ui/notifications/tool-input':
        this.#input = isMembers(params.arguments) ? params.arguments : {};
        this.#isComplete = !method.endsWith('partial');
        return this.#emit('input', this.#input);
      case 'ui/notifications/tool-result':
        this.#result = this.#server.result(params);
        return this.#emit('result', this.#result);
      case 'ui/notifications/tool-cancelled':
        this.#cancelled = String(params.reason ?? '');
        return this.#emit('cancelled', this.#cancelled);
      case 'ui/notifications/host-context-changed':
        this.#merge(params);
        return this.#emit('host', this.#host);
    }
  }

  #emit<E extends keyof ViewEvents>(event: E, value: ViewEvents[E]): void {
    for (const listener of [...this.#listeners[event]]) listener(value);
  }

  /** A change of the surroundings has only the members that changed. */
  #merge(context: HostContext): void {
    const { name, version, capabilities } = this.#host;
    this.#host = { ...this.#host, ...context, name, version, capabilities };
    this.#surroundings.applyLooks(context);
  }
}

function blocks(content: string | readonly ContentBlock[]): readonly ContentBlock[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}
