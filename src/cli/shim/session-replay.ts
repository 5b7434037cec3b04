/** Records the state of an agent's session, so that a shim can resume it with another server. It does no I/O. */
import { isObject } from '../../core/protocol/json.ts';
import type { RequestId } from '../../core/protocol/jsonrpc.ts';
import { isAside, readRelayMail } from '../../core/transports/relay.ts';
import { OpenRequests } from './open-requests.ts';
import { RequestIdMap } from './request-id-map.ts';
import { hasIdempotencyKey, type PendingCall, paramsOf, RetrySafety, SESSION_METHODS } from './retry-safety.ts';
import { ScannedMessage, scanMessages } from './scan.ts';
import { failure, idKey, notification } from './shim-messages.ts';

/** The handling of a line from the server. */
type Verdict =
  /** Sends it to the agent. */
  | 'pass'
  /** Sends {@link SessionReplay.replacement} to the agent. */
  | 'replaced'
  /** Drops it: it answers the shim's own request, or a request that the next server will answer. */
  | 'drop'
  /** The new server has accepted `initialize`: the shim sends the rest of the session's state. */
  | 'resumed'
  /** The server rejects the client: it is full, or shutting down. */
  | 'refused';

type ConnectionState =
  /** The server has not answered `initialize` yet. */
  | 'resuming'
  | 'linked'
  /** The server finishes its running requests. */
  | 'draining';

interface LostRequests {
  /** Errors and cancellations for the agent. */
  readonly toAgent: readonly string[];
  /** Requests for the next server. */
  readonly again: readonly string[];
}

const OVERLOADED = -31_001;
const SHUTTING_DOWN = -31_003;
const INTERNAL_ERROR = -32_603;

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
// Repeated from protocol/meta.ts, which would load five more modules: a shim must start fast.
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/**
 * One agent's session, over any number of connections.
 *
 * @example
 * const session = new SessionReplay();
 * session.sent('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}');
 * session.lost('The server restarted.').toAgent; // an error for request 1
 */
export class SessionReplay {
  /** The agent's requests without a response. */
  readonly #open = new OpenRequests();
  readonly #requestIds = new RequestIdMap();
  readonly #retrySafety = new RetrySafety();
  /** The ids of the shim's own requests. */
  readonly #ownIds = new Set<string>();
  /** Resent subscriptions: the agent already has their acknowledgements. */
  readonly #reopened = new Set<string>();
  #initialize: PendingCall | undefined;
  #initialized: string | undefined;
  #level: string | undefined;
  readonly #watched = new Map<string, string>();
  /** The first server's result of `initialize`, on which the agent relies. */
  #agreed: Readonly<Record<string, unknown>> = {};
  #sessions = 0;
  #connections = 0;
  #probes = 0;
  /** The number of lines sent on this connection. */
  #lines = 0;
  #state: ConnectionState = 'linked';
  /** The number of lines received on this connection. */
  #received = 0;
  /** The reason for which the server rejected the client, or empty. */
  refusal = '';
  /** The number of responses received for known requests. */
  responses = 0;
  /** The line for the agent after the verdict 'replaced'. */
  replacement = '';

  /** A new connection is open. @returns the line to send first; nothing else may be sent before its response ('resumed') */
  connected(): string | undefined {
    this.#connections += 1;
    this.#lines = this.#initialize ? 1 : 0;
    this.#received = 0;
    this.#state = this.#initialize === undefined ? 'linked' : 'resuming';
    return this.#initialize?.line;
  }

  /** The server has been asked to end. The next server handles requests that this one rejects from now on. */
  draining(): void {
    this.#state = 'draining';
  }

  /** True if a line waits for the next server while this one drains: all lines except responses, and cancellations of this server's requests. */
  isForNext(line: string): boolean {
    return scanMessages(line).some(({ answer, method, params }) => {
      if (method === 'notifications/cancelled') return !this.#open.has(idKey(params.requestId));
      return !answer;
    });
  }

  /** The lines that restore the session's state after `initialize`: the initialized notification, the log level and the watched resources. */
  resumption(): readonly string[] {
    const requests = [...(this.#level === undefined ? [] : [this.#level]), ...this.#watched.values()];
    for (const line of requests) for (const { key } of scanMessages(line)) if (key !== undefined) this.#ownIds.add(key);
    const all = [...(this.#initialized === undefined ? [] : [this.#initialized]), ...requests];
    this.#lines += all.length;
    return all;
  }

  /** The notifications for the agent after a resumed session: it may have missed changes. */
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

  /** Records a line of the agent, or the report of a skipped one, before it is sent. @returns the line to send; undefined if this server must not receive it */
  sent(line: string): string | undefined {
    let wanted: string | undefined = line;
    for (const seen of sentBy(line)) {
      const { key, method, answer, owed } = seen;
      if (owed !== undefined) this.#open.add(owed, { method: method ?? '', line: seen.line }, this.#lines + 1);
      else if (answer && key !== undefined) {
        const response = this.#requestIds.answered(key, seen, line);
        if (wanted !== undefined) wanted = response;
      } else if (key === undefined && method === 'notifications/initialized') this.#initialized = line;
      // A cancelled request gets no response.
      else if (key === undefined && method === 'notifications/cancelled')
        this.#open.cancelled(idKey(seen.params.requestId));
    }
    if (wanted !== undefined) this.#lines += 1;
    return wanted;
  }

  /** True if the agent waits for a response. Subscriptions do not count: they stay open. */
  get awaits(): boolean {
    return this.#open.some(({ method }) => method !== 'subscriptions/listen');
  }

  /** Creates a `ping`, which every server of every revision answers at once. Its response is dropped. */
  probe(): string {
    this.#probes += 1;
    this.#lines += 1;
    const id = `troupe/probe/${this.#probes}`;
    this.#ownIds.add(idKey(id));
    return JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' });
  }

  /** The server does not answer the shim's `ping` either, so its rejections of the agent's requests do not count. */
  distrust(): void {
    this.#open.distrust();
  }

  /** The server reports that it rejects a line of this connection, or one request of a batch. @param id the id of the error, if any */
  rejected(line: number, id: RequestId | undefined): void {
    this.#open.rejected(line, id);
  }

  /** The server reports the tools that are safe to call twice. */
  learn(tools: readonly string[]): void {
    this.#retrySafety.learn(tools);
  }

  /** Handles a line from the server. @throws {Error} if the session cannot continue */
  received(line: string): Verdict {
    this.#received += 1;
    let verdict: Verdict = 'pass';
    for (const seen of scanMessages(line)) {
      const { key, method, answer } = seen;
      if (method !== undefined && key !== undefined) verdict = this.#clientRequest(key, seen);
      else if (method !== undefined) verdict = this.#notification(method, seen);
      else if (answer) verdict = this.#answered(String(key), seen);
    }
    return verdict;
  }

  /** A line from the server was skipped. @param head its beginning @returns errors for the agent */
  skipped(head: string, why: string): readonly string[] {
    return scanMessages(head).flatMap(({ key, answer, error }) =>
      answer && key !== undefined && this.#open.answered(key, error !== undefined) ? failure(key, why) : [],
    );
  }

  #clientRequest(key: string, seen: ScannedMessage): Verdict {
    return this.#replace(this.#requestIds.asked(key, seen, this.#connections));
  }

  #notification(method: string, seen: ScannedMessage): Verdict {
    if (method === 'notifications/cancelled') return this.#replace(this.#requestIds.withdrawn(seen));
    if (method !== ACKNOWLEDGED || this.#reopened.size === 0) return 'pass';
    const { _meta: meta } = seen.params;
    const id = isObject(meta) ? String(meta[SUBSCRIPTION]) : '';
    const key = [...this.#reopened].find((key) => String(JSON.parse(key)) === id);
    return key !== undefined && this.#reopened.delete(key) ? 'drop' : 'pass';
  }

  #replace(replacement: string | undefined): Verdict {
    if (replacement === undefined) return 'pass';
    this.replacement = replacement;
    return 'replaced';
  }

  #answered(key: string, seen: ScannedMessage): Verdict {
    if (this.#received === 1 && (key === 'null' || key === 'undefined') && seen.error?.code === OVERLOADED)
      return this.#refuse(seen);
    if (this.#state === 'resuming' && key === keyOfInitialize(this.#initialize)) return this.#resumed(seen);
    const failed = seen.error !== undefined;
    const own = this.#ownIds.delete(key);
    const asked = this.#open.find(key, failed);
    // A server that cannot serve a `ping` may serve nothing else.
    const works = !own || seen.error?.code !== INTERNAL_ERROR;
    if (works && (own || asked)) {
      this.responses += 1;
      this.#open.trust();
    }
    if (own) return 'drop';
    if (key === 'null' || key === 'undefined') {
      // An error inside a batch is for one message only, so it does not count as the rejection of a line.
      if (failed && seen.line !== undefined) this.#open.rejection();
      return 'pass';
    }
    if (asked?.method === 'initialize' && seen.error?.code === SHUTTING_DOWN) return this.#refuse(seen);
    // A request that the draining server rejects or aborts stays in flight: the next server runs it.
    if (this.#state === 'draining' && asked?.line !== undefined && this.#isLeftToNext(asked, seen)) return 'drop';
    this.#open.answered(key, failed);
    if (!failed && asked?.line !== undefined && SESSION_METHODS.has(asked.method)) this.#remember(asked, seen.result);
    return 'pass';
  }

  #isLeftToNext(asked: PendingCall, seen: ScannedMessage): boolean {
    if (asked.method === 'subscriptions/listen') return true;
    return seen.error?.code === SHUTTING_DOWN && this.#retrySafety.isRepeatable(asked);
  }

  #refuse(seen: ScannedMessage): Verdict {
    this.refusal = String(seen.error?.message);
    return 'refused';
  }

  #resumed(seen: ScannedMessage): Verdict {
    if (seen.error) return this.#refuse(seen);
    const { protocolVersion: now } = seen.result;
    const { protocolVersion: before } = this.#agreed;
    if (now !== before)
      throw new Error(
        `the restarted server uses protocol revision ${String(now)}, but the session was opened with ${String(before)}: restart the agent`,
      );
    this.#state = 'linked';
    return 'resumed';
  }

  #remember(asked: PendingCall, result: Readonly<Record<string, unknown>>): void {
    const uri = String(paramsOf(asked).uri);
    if (asked.method === 'initialize') {
      this.#sessions += 1;
      this.#initialize = asked;
      this.#agreed = result;
      // A second `initialize` opens a new session.
      this.#initialized = undefined;
      this.#level = undefined;
      this.#watched.clear();
    } else if (asked.method === 'logging/setLevel') this.#level = asked.line;
    else if (asked.method === 'resources/subscribe') this.#watched.set(uri, asked.line ?? '');
    else this.#watched.delete(uri);
  }

  /**
   * The connection has ended.
   *
   * @param durable the next server knows the results of requests to this one
   * @returns the requests to resend: those that are safe to repeat, and with a durable store also those that the next server
   * recognises as repeats; errors for all other requests; and cancellations of the server's own requests
   */
  lost(why: string, durable = false): LostRequests {
    const toAgent: string[] = [];
    const again: string[] = [];
    // Ids identify requests only within one session: in a second session, the agent may use the same ids again.
    const known = durable && this.#sessions <= 1;
    for (const [key, asked] of this.#open.drain()) {
      const { line, method } = asked;
      if (line !== undefined && (this.#retrySafety.isRepeatable(asked) || (known && hasIdempotencyKey(asked)))) {
        again.push(line);
        if (method === 'subscriptions/listen') this.#reopened.add(key);
      } else toAgent.push(failure(key, why));
    }
    toAgent.push(...this.#requestIds.lost(why));
    this.#ownIds.clear();
    return { toAgent, again };
  }

  /** True if a server answers a line: all lines except notifications and responses, including unreadable lines. */
  static isAnswered(line: string): boolean {
    const messages = scanMessages(line);
    const silent = ({ key, method, answer }: ScannedMessage): boolean =>
      answer || (key === undefined && method !== undefined);
    return messages.length === 0 || !messages.every(silent);
  }

  /** Creates errors for the requests of lines that were never sent. */
  static refused(lines: readonly string[], why: string, code?: number): readonly string[] {
    return lines.flatMap(sentBy).flatMap(({ owed }) => (owed === undefined ? [] : [failure(owed, why, code)]));
  }

  /** Removes the requests of this connection: its server has read none of them, and they are resent. */
  unsent(): void {
    this.#open.drain();
  }
}

/** Scans a line of the agent. For a skipped line, which the server rejects, only a readable id counts. */
function sentBy(line: string): readonly ScannedMessage[] {
  if (!isAside(line)) return scanMessages(line);
  const mail = readRelayMail(line);
  if (mail?.type !== 'unreadable') return [];
  return scanMessages(mail.head).map(
    (seen) => new ScannedMessage(seen.owed, undefined, false, seen.line === undefined ? seen.body : line),
  );
}

function keyOfInitialize(asked: PendingCall | undefined): string | undefined {
  return scanMessages(asked?.line ?? '')[0]?.key;
}
