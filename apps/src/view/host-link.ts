/** The JSON-RPC peer of a view: requests to its host with a deadline each, and the host's requests and notifications. */
import type { Surroundings } from './surroundings.ts';

/** The messages between a view and its host, as objects. */
export interface Channel {
  send(message: object): void;
  /** @returns a function that stops listening */
  receive(listener: (message: unknown) => void): () => void;
}

/** Members of a JSON object. */
export type Members = Readonly<Record<string, unknown>>;

/** A request that the host did not answer with a result. */
export class ViewError extends Error {
  override readonly name = 'ViewError';
  /** `refused`: the host answered with an error. `timeout`: it did not answer in time. `closed`: the view was closed first. */
  readonly reason: 'refused' | 'timeout' | 'closed';
  /** The JSON-RPC code of a refusal, such as -32601 for a method that the host does not offer. */
  readonly code: number | undefined;

  constructor(reason: ViewError['reason'], message: string, code?: number) {
    super(message);
    this.reason = reason;
    this.code = code;
  }
}

/** The host's side of the conversation: what it sends, and the answers that it gets. */
export interface HostMessages {
  /** @returns the result; undefined for a method that the view does not offer */
  request(method: string, params: Members): Promise<Members> | undefined;
  notification(method: string, params: Members): void;
}

interface Pending {
  settle(result: Members | ViewError): void;
}

const METHOD_NOT_FOUND = -32601;

export class HostLink {
  readonly #channel: Channel;
  readonly #surroundings: Surroundings;
  readonly #pending = new Map<number, Pending>();
  readonly #stop: () => void;
  #lastId = 0;
  #closed = false;

  constructor(channel: Channel, surroundings: Surroundings, host: HostMessages) {
    this.#channel = channel;
    this.#surroundings = surroundings;
    this.#stop = channel.receive((message) => this.#receive(message, host));
  }

  /**
   * Sends a request.
   * @param deadlineMs milliseconds until it fails
   * @throws {ViewError} if the host refuses it, does not answer, or the view is closed
   */
  request(method: string, params: Members, deadlineMs: number, signal?: AbortSignal): Promise<Members> {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(closed(method));
      this.#lastId += 1;
      const id = this.#lastId;
      const settle = (result: Members | ViewError): void => {
        this.#pending.delete(id);
        cancel();
        signal?.removeEventListener('abort', abort);
        if (result instanceof ViewError) reject(result);
        else resolve(result);
      };
      const abort = (): void => settle(closed(method));
      const cancel = this.#surroundings.after(deadlineMs, () =>
        settle(new ViewError('timeout', `${method}: the host did not answer within ${deadlineMs} ms`)),
      );
      this.#pending.set(id, { settle });
      if (signal?.aborted) return abort();
      signal?.addEventListener('abort', abort);
      this.#channel.send({ jsonrpc: '2.0', id, method, params });
    });
  }

  notify(method: string, params: Members): void {
    if (!this.#closed) this.#channel.send({ jsonrpc: '2.0', method, params });
  }

  /** Fails what is pending, and sends and receives no more. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stop();
    for (const { settle } of [...this.#pending.values()]) settle(closed('the request'));
  }

  #receive(message: unknown, host: HostMessages): void {
    if (!isMembers(message) || message.jsonrpc !== '2.0') return;
    const { id, method, params, result, error } = message;
    const members = isMembers(params) ? params : {};
    if (typeof method !== 'string') {
      const pending = typeof id === 'number' ? this.#pending.get(id) : undefined;
      if (isMembers(error))
        pending?.settle(
          new ViewError('refused', String(error.message), typeof error.code === 'number' ? error.code : undefined),
        );
      else pending?.settle(isMembers(result) ? result : {});
      return;
    }
    if (id === undefined) return host.notification(method, members);
    const answer = (part: Members): void => {
      if (!this.#closed) this.#channel.send({ jsonrpc: '2.0', id, ...part });
    };
    const answered = host.request(method, members);
    if (answered) void answered.then((value) => answer({ result: value }));
    else answer({ error: { code: METHOD_NOT_FOUND, message: `a view does not offer ${method}` } });
  }
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function closed(method: string): ViewError {
  return new ViewError('closed', `${method} was given up: the view is closed or the call was cancelled`);
}
