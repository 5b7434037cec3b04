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
  /**
   * `refused`: the host answered with an error. `timeout`: it did not answer in time. `closed`: the view was closed first. `gone`:
   * the resource of a watch does not exist, or does not any more.
   */
  declare readonly reason: 'refused' | 'timeout' | 'closed' | 'gone';
  /** The JSON-RPC code of a refusal, such as -32601 for a method that the host does not offer. */
  declare readonly code: number | undefined;

  constructor(reason: ViewError['reason'], message: string, code?: number) {
    super(message);
    Object.assign(this, { reason, code });
  }
}

/** The requests and notifications of the host. */
export interface HostMessages {
  /** @returns the result; undefined for a method that the view does not offer */
  request(method: string, params: Members): Promise<Members> | undefined;
  notification(method: string, params: Members): void;
}

const METHOD_NOT_FOUND = -32601;

export interface HostLink {
  /**
   * Sends a request.
   * @param deadlineMs milliseconds until it fails
   * @throws {ViewError} if the host refuses it, does not answer, or the view is closed
   */
  request(method: string, params: Members, deadlineMs: number, signal?: AbortSignal): Promise<Members>;
  notify(method: string, params: Members): void;
  /** Fails what is pending, and sends and receives no more. */
  close(): void;
}

export function hostLink(channel: Channel, { after }: Surroundings, host: HostMessages): HostLink {
  /** The functions that end each request, by its id. */
  const pending = new Map<unknown, (result: Members | ViewError) => void>();
  let last = 0;
  let isClosed = false;
  const send = (message: Members): void => {
    if (!isClosed) channel.send({ jsonrpc: '2.0', ...message });
  };
  const stop = channel.receive((message) => {
    if (!isMembers(message) || message.jsonrpc !== '2.0') return;
    const { id, method, error } = message;
    const params = membersOf(message.params);
    if (typeof method !== 'string') {
      const { message: why, code } = membersOf(error);
      pending.get(id)?.(
        error === undefined ? membersOf(message.result) : new ViewError('refused', String(why), Number(code)),
      );
    } else if (id === undefined) host.notification(method, params);
    else {
      const answered = host.request(method, params);
      if (answered) void answered.then((result) => send({ id, result }));
      else send({ id, error: { code: METHOD_NOT_FOUND, message: 'Method not found' } });
    }
  });
  return {
    request: (method, params, deadlineMs, signal) =>
      new Promise((resolve, reject) => {
        last += 1;
        const id = last;
        const settle = (result: Members | ViewError): void => {
          pending.delete(id);
          cancel();
          signal?.removeEventListener('abort', abort);
          if (result instanceof ViewError) reject(result);
          else resolve(result);
        };
        const abort = (): void => settle(new ViewError('closed', `${method}: closed`));
        const cancel = after(deadlineMs, () => settle(new ViewError('timeout', `${method}: no answer`)));
        pending.set(id, settle);
        if (isClosed || signal?.aborted) return abort();
        signal?.addEventListener('abort', abort);
        send({ id, method, params });
      }),
    notify: (method, params) => send({ method, params }),
    close() {
      isClosed = true;
      stop();
      for (const settle of pending.values()) settle(new ViewError('closed', 'closed'));
    },
  };
}

export function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The members of an object; none of another value. */
export function membersOf(value: unknown): Members {
  return isMembers(value) ? value : {};
}
