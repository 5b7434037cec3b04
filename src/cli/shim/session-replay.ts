/** What a shim remembers of what an agent and a server say to each other, so that it can go on with another server. It reads and writes nothing. */
import { isObject } from '../../protocol/json.ts';
import type { RequestId } from '../../protocol/jsonrpc.ts';
import { isAside, readRelayMail } from '../../transports/relay.ts';
import { OpenRequests } from './open-requests.ts';
import { RequestIdMap } from './request-id-map.ts';
import { hasIdempotencyKey, MAX_REMEMBERED, type PendingCall, paramsOf, RetrySafety } from './retry-safety.ts';
import { ScannedMessage, scanMessages } from './scan.ts';
import { failure, idKey, notification } from './shim-messages.ts';

/** What is to become of a line from the server. */
export type Verdict =
  /** It goes to the agent. */
  | 'pass'
  /** It goes to the agent in other words: {@link SessionReplay.said}. */
  | 'reworded'
  /** It answers what only the shim has asked, or what the next server will answer. */
  | 'swallow'
  /** The new server has taken up the agent's session: the rest of the replay may go. */
  | 'resumed'
  /** The server takes no clients, or no more of them. */
  | 'refused';

export interface LostRequest {
  /** What the agent is told. */
  readonly toAgent: readonly string[];
  /** What the next server is sent again. */
  readonly again: readonly string[];
}

const OVERLOADED = -31_001;
const SHUTTING_DOWN = -31_003;

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
// Not from protocol/meta.ts, which loads five modules more: a shim must start fast.
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/**
 * One agent's conversation, over as many connections as it takes.
 *
 * @example
 * const conversation = new Conversation();
 * conversation.sent('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}');
 * conversation.lost('the server restarted').toAgent; // an error for request 1
 */
export class SessionReplay {
  /** What the agent waits for. */
  readonly #open = new OpenRequests();
  readonly #questions = new RequestIdMap();
  readonly #repeatable = new RetrySafety();
  /** Ids of answers that are not for the agent. */
  readonly #ours = new Set<string>();
  /** Subscriptions that the agent believes to be open already. */
  readonly #reopened = new Set<string>();
  #initialize: PendingCall | undefined;
  #initialized: string | undefined;
  #level: string | undefined;
  readonly #watched = new Map<string, string>();
  /** What the first server said to `initialize`: the agent counts on it. */
  #agreed: Readonly<Record<string, unknown>> = {};
  #sessions = 0;
  #connections = 0;
  #probes = 0;
  /** Lines that were sent on this connection. */
  #lines = 0;
  #resuming = false;
  #draining = false;
  #heard = false;
  /** Why the server would not have this client. */
  refusal = '';
  /** How many responses have come that belong to a request. */
  responses = 0;
  /** What the agent is told in place of the line that was 'reworded'. */
  said = '';

  /** A connection is new. @returns what is to be sent first; nothing else may be sent until it is answered ('resumed') */
  connected(): string | undefined {
    this.#connections += 1;
    this.#lines = this.#initialize ? 1 : 0;
    this.#heard = false;
    this.#draining = false;
    this.#resuming = this.#initialize !== undefined;
    return this.#initialize?.line;
  }

  /** The server is asked to end: what it will not do any more, the next one shall. */
  draining(): void {
    this.#draining = true;
  }

  /** Whether a line of the agent is for the next server while this one drains: all but what belongs to a request that it has. */
  isForNext(line: string): boolean {
    return scanMessages(line).some(({ answer, method, params }) => {
      if (method === 'notifications/cancelled') return !this.#open.has(idKey(params.requestId));
      return !answer;
    });
  }

  /** What a server is told after it has taken up the session: all that the last one knew. */
  resumption(): readonly string[] {
    const requests = [...(this.#level === undefined ? [] : [this.#level]), ...this.#watched.values()];
    for (const line of requests) for (const { key } of scanMessages(line)) if (key !== undefined) this.#ours.add(key);
    const all = [...(this.#initialized === undefined ? [] : [this.#initialized]), ...requests];
    this.#lines += all.length;
    return all;
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

  /** A line of the agent is about to be sent, or what stands for one that was skipped. @returns what is to be sent; undefined for what is not for this server */
  sent(line: string): string | undefined {
    let wanted: string | undefined = line;
    for (const seen of sentBy(line)) {
      const { key, method, answer, owed } = seen;
      if (owed !== undefined) this.#open.add(owed, { method: method ?? '', line: seen.line }, this.#lines + 1);
      else if (answer && key !== undefined) {
        const said = this.#questions.answered(key, seen, line);
        if (wanted !== undefined) wanted = said;
      } else if (key === undefined && method === 'notifications/initialized') this.#initialized = line;
      // A request that was cancelled is owed no answer.
      else if (key === undefined && method === 'notifications/cancelled')
        this.#open.cancelled(idKey(seen.params.requestId));
    }
    if (wanted !== undefined) this.#lines += 1;
    return wanted;
  }

  /** Whether the agent waits for a response. A subscription is open for as long as the agent likes. */
  get awaits(): boolean {
    return this.#open.some(({ method }) => method !== 'subscriptions/listen');
  }

  /** A request of the shim's own, which every server of every revision answers at once. The answer is not for the agent. */
  probe(): string {
    this.#probes += 1;
    this.#lines += 1;
    const id = `troupe/probe/${this.#probes}`;
    this.#ours.add(idKey(id));
    return JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' });
  }

  /** The server does not respond to the shim's own requests either: it has not rejected the agent's for what they are. */
  distrust(): void {
    this.#open.distrust();
  }

  /** The server rejects a line of this connection, or of a batch one request. @param id of the error, if it has one */
  rejected(line: number, id: RequestId | undefined): void {
    this.#open.rejected(line, id);
  }

  /** The server says which tools may be called twice. */
  learn(tools: readonly string[]): void {
    this.#repeatable.learn(tools);
  }

  /** A line has come from the server. @throws {Error} when the session cannot go on with it */
  received(line: string): Verdict {
    const first = !this.#heard;
    this.#heard = true;
    let verdict: Verdict = 'pass';
    for (const seen of scanMessages(line)) {
      const { key, method, answer } = seen;
      if (method !== undefined && key !== undefined) verdict = this.#question(key, seen);
      else if (method !== undefined) verdict = this.#told(method, seen);
      else if (answer) verdict = this.#answered(String(key), seen, first);
    }
    return verdict;
  }

  /** A line from the server was skipped. @param head how it begins @returns what the agent is told */
  leftOut(head: string, why: string): readonly string[] {
    return scanMessages(head).flatMap(({ key, answer, error }) =>
      answer && key !== undefined && this.#open.answered(key, error !== undefined) ? failure(key, why) : [],
    );
  }

  #question(key: string, seen: ScannedMessage): Verdict {
    return this.#reword(this.#questions.asked(key, seen, this.#connections));
  }

  #told(method: string, seen: ScannedMessage): Verdict {
    if (method === 'notifications/cancelled') return this.#reword(this.#questions.withdrawn(seen));
    if (method !== ACKNOWLEDGED || this.#reopened.size === 0) return 'pass';
    const { _meta: meta } = seen.params;
    const id = isObject(meta) ? String(meta[SUBSCRIPTION]) : '';
    const key = [...this.#reopened].find((key) => String(JSON.parse(key)) === id);
    return key !== undefined && this.#reopened.delete(key) ? 'swallow' : 'pass';
  }

  #reword(said: string | undefined): Verdict {
    if (said === undefined) return 'pass';
    this.said = said;
    return 'reworded';
  }

  #answered(key: string, seen: ScannedMessage, first: boolean): Verdict {
    if (first && (key === 'null' || key === 'undefined') && seen.error?.code === OVERLOADED) return this.#refuse(seen);
    if (this.#resuming && key === keyOfInitialize(this.#initialize)) return this.#resumed(seen);
    const failed = seen.error !== undefined;
    const ours = this.#ours.delete(key);
    const asked = this.#open.find(key, failed);
    if (ours || asked) {
      this.responses += 1;
      this.#open.trust();
    }
    if (ours) return 'swallow';
    if (key === 'null' || key === 'undefined') {
      // That of a batch is for one of its messages, and says nothing about the others.
      if (failed && seen.line !== undefined) this.#open.rejection();
      return 'pass';
    }
    if (asked?.method === 'initialize' && seen.error?.code === SHUTTING_DOWN) return this.#refuse(seen);
    // What the server would not do, or broke off, is done by the next: it stays in flight.
    if (this.#draining && asked?.line !== undefined && this.#isLeftToNext(asked, seen)) return 'swallow';
    this.#open.answered(key, failed);
    if (!failed && asked?.line !== undefined && MAX_REMEMBERED.has(asked.method)) this.#remember(asked, seen.result);
    return 'pass';
  }

  #isLeftToNext(asked: PendingCall, seen: ScannedMessage): boolean {
    if (asked.method === 'subscriptions/listen') return true;
    return seen.error?.code === SHUTTING_DOWN && this.#repeatable.isHarmless(asked);
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
        `the server was restarted and speaks revision ${String(now)} now, where the session was opened with ${String(before)}: start the agent anew`,
      );
    this.#resuming = false;
    return 'resumed';
  }

  #remember(asked: PendingCall, result: Readonly<Record<string, unknown>>): void {
    const uri = String(paramsOf(asked).uri);
    if (asked.method === 'initialize') {
      this.#sessions += 1;
      this.#initialize = asked;
      this.#agreed = result;
      // It opens another session than the one before, if there was one.
      this.#initialized = undefined;
      this.#level = undefined;
      this.#watched.clear();
    } else if (asked.method === 'logging/setLevel') this.#level = asked.line;
    else if (asked.method === 'resources/subscribe') this.#watched.set(uri, asked.line ?? '');
    else this.#watched.delete(uri);
  }

  /**
   * The connection is gone.
   *
   * @param kept whether the server keeps what requests came to, where the next one finds it
   * @returns what is sent again: all that does no harm when done twice, and of the rest what a server that keeps its answers
   * can tell for a repeat; and what the agent is told: an error for every other request, and that nobody waits for its answers
   */
  lost(why: string, kept = false): LostRequest {
    const toAgent: string[] = [];
    const again: string[] = [];
    // An agent that opens a second session may begin to count anew.
    const known = kept && this.#sessions <= 1;
    for (const [key, asked] of this.#open.drain()) {
      const { line, method } = asked;
      if (line !== undefined && (this.#repeatable.isHarmless(asked) || (known && hasIdempotencyKey(asked)))) {
        again.push(line);
        if (method === 'subscriptions/listen') this.#reopened.add(key);
      } else toAgent.push(failure(key, why));
    }
    toAgent.push(...this.#questions.lost(why));
    this.#ours.clear();
    return { toAgent, again };
  }

  /** Whether a server answers a line: all but notifications and responses, also what it cannot read. */
  static isAnswered(line: string): boolean {
    const messages = scanMessages(line);
    const silent = ({ key, method, answer }: ScannedMessage): boolean =>
      answer || (key === undefined && method !== undefined);
    return messages.length === 0 || !messages.every(silent);
  }

  /** Errors for the requests of lines that were never sent. */
  static refused(lines: readonly string[], why: string, code?: number): readonly string[] {
    return lines.flatMap(sentBy).flatMap(({ owed }) => (owed === undefined ? [] : [failure(owed, why, code)]));
  }

  /** Forgets the requests of this connection: its server has read none of them, and they are sent again. */
  unsent(): void {
    this.#open.drain();
  }
}

/** What an agent has sent with a line. One that was skipped is rejected: of that only the id counts, if it can be read. */
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
