/** What a shim remembers of what an agent and a server say to each other, so that it can go on with another server. It reads and writes nothing. */
import { isObject } from '../protocol/json.ts';

/** What is to become of a line from the server. */
export type Verdict =
  /** It goes to the agent. */
  | 'pass'
  /** It answers what only the shim has asked. */
  | 'swallow'
  /** The new server has taken up the agent's session: the rest of the replay may go. */
  | 'resumed'
  /** The server takes no clients, or no more of them. */
  | 'refused';

interface Asked {
  readonly id: unknown;
  readonly method: string;
  /** The whole line, of what a new server may have to be told again. */
  readonly line: string;
  readonly params: Readonly<Record<string, unknown>>;
}

const OVERLOADED = -31_001;
const SHUTTING_DOWN = -31_003;
const INTERNAL_ERROR = -32_603;

/** The methods that leave something behind in a session. */
const REMEMBERED: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/**
 * One agent's conversation, over as many connections as it takes.
 *
 * @example
 * const conversation = new Conversation();
 * conversation.sent('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
 * conversation.lost('the server restarted').toAgent; // an error for request 1
 */
export class Conversation {
  /** What the agent waits for, by id. */
  readonly #inFlight = new Map<string, Asked>();
  /** What the server waits for on this connection, by id. */
  readonly #asks = new Map<string, unknown>();
  /** Ids of answers that are not for the agent. */
  readonly #ours = new Set<string>();
  #initialize: Asked | undefined;
  #initialized: string | undefined;
  #level: string | undefined;
  readonly #watched = new Map<string, string>();
  /** What the first server said to `initialize`: the agent counts on it. */
  #agreed: Readonly<Record<string, unknown>> = {};
  #resuming = false;
  #heard = false;
  /** Why the server would not have this client. */
  refusal = '';

  /** A connection is new. @returns what is to be sent first; nothing else may be sent until it is answered ('resumed') */
  connected(): string | undefined {
    this.#heard = false;
    this.#resuming = this.#initialize !== undefined;
    return this.#initialize?.line;
  }

  /** What a server is told after it has taken up the session: all that the last one knew. */
  resumption(): readonly string[] {
    const requests = [...(this.#level === undefined ? [] : [this.#level]), ...this.#watched.values()];
    for (const line of requests) for (const { id } of read(line)) this.#ours.add(keyOf(id));
    return [...(this.#initialized === undefined ? [] : [this.#initialized]), ...requests];
  }

  /** What an agent is told then: it may have missed that something changed. */
  changes(): readonly string[] {
    if (this.#initialized === undefined) return [];
    const { capabilities } = this.#agreed;
    const offered = isObject(capabilities) ? capabilities : {};
    const lists = ['tools', 'resources', 'prompts'].filter((kind) => {
      const capability = offered[kind];
      return isObject(capability) && capability.listChanged === true;
    });
    return [
      ...lists.map((kind) => `notifications/${kind}/list_changed`).map((method) => notification(method)),
      ...[...this.#watched.keys()].map((uri) => notification('notifications/resources/updated', { uri })),
    ];
  }

  /** A line of the agent is about to be sent. @returns false for one that is not for this server */
  sent(line: string): boolean {
    let wanted = true;
    for (const { id, method, params, answer } of read(line)) {
      if (method !== undefined && id !== undefined) {
        const kept = REMEMBERED.has(method) ? line : '';
        this.#inFlight.set(keyOf(id), { id, method, params, line: kept });
      } else if (method === 'notifications/initialized') this.#initialized = line;
      // A request that was cancelled is owed no answer.
      else if (method === 'notifications/cancelled') this.#inFlight.delete(keyOf(params.requestId));
      // An answer to what the last server asked would puzzle this one.
      else if (answer) wanted = this.#asks.delete(keyOf(id)) && wanted;
    }
    return wanted;
  }

  /** A line has come from the server. @throws {Error} when the session cannot go on with it */
  received(line: string): Verdict {
    const first = !this.#heard;
    this.#heard = true;
    let verdict: Verdict = 'pass';
    for (const { id, method, answer, result, error } of read(line)) {
      if (method !== undefined) {
        if (id !== undefined) this.#asks.set(keyOf(id), id);
      } else if (answer) verdict = this.#answered(keyOf(id), result, error, first);
    }
    return verdict;
  }

  #answered(
    key: string,
    result: unknown,
    error: Readonly<Record<string, unknown>> | undefined,
    first: boolean,
  ): Verdict {
    if (first && error?.code === OVERLOADED && (key === 'null' || key === 'undefined')) return this.#refuse(error);
    if (this.#resuming && key === keyOf(this.#initialize?.id)) return this.#resumed(result, error);
    if (this.#ours.delete(key)) return 'swallow';
    const asked = this.#inFlight.get(key);
    if (asked?.method === 'initialize' && error?.code === SHUTTING_DOWN) return this.#refuse(error);
    this.#inFlight.delete(key);
    if (asked && asked.line !== '' && !error) this.#remember(asked, result);
    return 'pass';
  }

  #refuse(error: Readonly<Record<string, unknown>>): Verdict {
    this.refusal = String(error.message);
    return 'refused';
  }

  #resumed(result: unknown, error: Readonly<Record<string, unknown>> | undefined): Verdict {
    if (error) return this.#refuse(error);
    const { protocolVersion: now } = isObject(result) ? result : {};
    const { protocolVersion: before } = this.#agreed;
    if (now !== before)
      throw new Error(
        `the server was restarted and speaks revision ${String(now)} now, where the session was opened with ${String(before)}: start the agent anew`,
      );
    this.#resuming = false;
    return 'resumed';
  }

  #remember(asked: Asked, result: unknown): void {
    const uri = String(asked.params.uri);
    if (asked.method === 'initialize') {
      this.#initialize = asked;
      this.#agreed = isObject(result) ? result : {};
      // It opens another session than the one before, if there was one.
      this.#initialized = undefined;
      this.#level = undefined;
      this.#watched.clear();
    } else if (asked.method === 'logging/setLevel') this.#level = asked.line;
    else if (asked.method === 'resources/subscribe') this.#watched.set(uri, asked.line);
    else this.#watched.delete(uri);
  }

  /**
   * The connection is gone.
   *
   * @returns what the agent is told: an error for each request that was in flight; and what is sent again, which is an
   * `initialize` that was not answered: nothing can have come of it
   */
  lost(why: string): { readonly toAgent: readonly string[]; readonly again: readonly string[] } {
    const toAgent: string[] = [];
    const again: string[] = [];
    for (const { id, method, line } of this.#inFlight.values()) {
      if (method === 'initialize') again.push(line);
      else toAgent.push(failure(id, why));
    }
    for (const requestId of this.#asks.values())
      toAgent.push(notification('notifications/cancelled', { requestId, reason: why }));
    this.#inFlight.clear();
    this.#asks.clear();
    this.#ours.clear();
    return { toAgent, again };
  }

  /** Errors for the requests of lines that were never sent. */
  static refused(lines: readonly string[], why: string): readonly string[] {
    return lines
      .flatMap(read)
      .filter(({ id, method }) => id !== undefined && method !== undefined)
      .map(({ id }) => failure(id, why));
  }

  /** Forgets the requests of these lines: their server did not read them, and they are sent again. */
  unsent(lines: readonly string[]): void {
    for (const { id } of lines.flatMap(read)) this.#inFlight.delete(keyOf(id));
  }
}

interface Read {
  readonly id: unknown;
  readonly method: string | undefined;
  readonly params: Readonly<Record<string, unknown>>;
  readonly answer: boolean;
  readonly result: unknown;
  readonly error: Readonly<Record<string, unknown>> | undefined;
}

/** The messages of a line: one, or those of a batch, or none if it is no JSON (the server says so). */
function read(line: string): readonly Read[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return [];
  }
  return (Array.isArray(parsed) ? parsed : [parsed]).filter(isObject).map(({ id, method, params, result, error }) => ({
    id,
    method: typeof method === 'string' ? method : undefined,
    params: isObject(params) ? params : {},
    answer: method === undefined && (result !== undefined || error !== undefined),
    result,
    error: isObject(error) ? error : undefined,
  }));
}

/** Tells 1 from "1". */
function keyOf(id: unknown): string {
  return String(JSON.stringify(id));
}

function failure(id: unknown, message: string): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message } });
}

function notification(method: string, params?: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method, ...(params ? { params } : {}) });
}
