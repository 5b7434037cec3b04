/** A view: the connection of an author's page, with the types of the tools that it calls. */
import type { Connection, Listener, ViewEvents } from './connection.ts';
import type { DisplayMode, Host } from './host-context.ts';
import type { Members } from './host-link.ts';
import type { CallOptions, ResourceContents, ToolResult } from './server-proxy.ts';
import type { WatchOptions } from './watch.ts';

const MODES: readonly DisplayMode[] = ['inline', 'fullscreen', 'pip'];

/** The arguments and results of the tools that a view calls, by their names. */
export type ToolTypes = Readonly<Record<string, { readonly input?: object; readonly output?: unknown }>>;

export interface ViewOptions {
  /** The name and version of the page, which a host may show. */
  readonly name?: string;
  readonly version?: string;
  /** The display modes in which the page works; default inline and fullscreen. */
  readonly displayModes?: readonly DisplayMode[];
}

export class View<Tools extends ToolTypes = ToolTypes> {
  readonly #connection: Connection;

  #input: Members | undefined;
  #isInputComplete = false;
  #result: ToolResult | undefined;
  #cancelled: string | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    connection.on('partial', (input) => {
      this.#input = input;
    });
    connection.on('input', (input) => {
      this.#input = input;
      this.#isInputComplete = true;
    });
    connection.on('result', (result) => {
      this.#result = result;
    });
    connection.on('cancelled', (reason) => {
      this.#cancelled = reason;
    });
  }

  /** The arguments of the call that opened the view; undefined before the host sends them. */
  get input(): Members | undefined {
    return this.#input;
  }

  /** True if `input` is all of the arguments; false while a model writes them. */
  get isInputComplete(): boolean {
    return this.#isInputComplete;
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
    return this.#connection.host;
  }

  /** Aborted when the view is closed. */
  get signal(): AbortSignal {
    return this.#connection.signal;
  }

  /** Calls `listener` for each notification of one kind. @returns a function that stops it */
  on<E extends keyof ViewEvents>(event: E, listener: Listener<E>): () => void {
    return this.#connection.on(event, listener);
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
    return this.#connection.call(tool, args, options) as Promise<ToolResult<Tools[Name]['output']>>;
  }

  /**
   * Reads a resource of the server.
   * @throws {ViewError} if the host refuses it or does not answer
   */
  read(uri: string, options?: CallOptions): Promise<readonly ResourceContents[]> {
    return this.#connection.read(uri, options);
  }

  /**
   * Yields the JSON of a resource, now and after each change: from `troupe_watch`, which waits at the server, or from a read
   * every 5 seconds where the host does not proxy that tool. Nothing is asked while no one can see the view. Ends when the view
   * is closed.
   * @throws {ViewError} if the host proxies neither
   * @example for await (const board of view.watch('board://main')) draw(board);
   */
  watch<T = unknown>(uri: string, options?: WatchOptions): AsyncGenerator<T, void> {
    return this.#connection.watch(uri, options);
  }

  /**
   * Gives the model a text with the next message of its user. It replaces the last one.
   * @throws {ViewError} if the host does not offer it
   */
  async tellModel(text: string, structuredContent?: Members): Promise<void> {
    const content = [{ type: 'text', text }];
    await this.#connection.ask('ui/update-model-context', {
      content,
      ...(structuredContent && { structuredContent }),
    });
  }

  /** Writes a message in the name of the user. @throws {ViewError} if the host refuses it */
  async say(text: string): Promise<void> {
    await this.#connection.ask('ui/message', { role: 'user', content: [{ type: 'text', text }] });
  }

  /** Opens a link in the browser of the user. @throws {ViewError} if the host refuses it */
  async open(url: string): Promise<void> {
    await this.#connection.ask('ui/open-link', { url });
  }

  /** Asks for another display mode. @returns the mode that the host gave, which may be another */
  async mode(mode: DisplayMode): Promise<DisplayMode> {
    const { mode: given } = await this.#connection.ask('ui/request-display-mode', { mode });
    return MODES.find((known) => known === given) ?? mode;
  }

  /** Writes to the log of the host. */
  log(level: 'debug' | 'info' | 'warning' | 'error', data: unknown): void {
    this.#connection.notify('notifications/message', { level, data });
  }

  /** Ends every watch, fails what is pending, and sends and receives no more. */
  close(): void {
    this.#connection.close();
  }
}
