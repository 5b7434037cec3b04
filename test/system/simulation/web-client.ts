/** A client of a simulated world over HTTP: its session outlives connections and processes, and its streams go on where they broke off. */
import { isObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import type { Act, Reply } from './plan.ts';
import type { Around, Fetch, Player } from './player.ts';
import type { Random } from './random.ts';
import type { Who } from './roster.ts';
import { type ToolArgs, wordFor } from './tools.ts';

interface Call {
  readonly id: number;
  readonly text: string;
  readonly tool: string;
  readonly nonce: string;
  readonly sent: number;
  /** The number of the process that it was sent to. */
  readonly generation: number;
  answered: string | undefined;
  /** Nothing was heard of it before its connection broke: nobody can come back to it. */
  lost: boolean;
  cancelled: boolean;
  stream: Stream | undefined;
}

/** What was heard of one stream, whichever connections it came through. */
interface Stream {
  readonly events: { readonly id: string; readonly data: string }[];
  readonly call: Call;
  reading: boolean;
}

type Session =
  | { readonly state: 'none' | 'opening' }
  | { readonly state: 'open'; readonly id: string; readonly since: number }
  /** The client has ended it: nobody may bring it back. */
  | { readonly state: 'ended'; readonly id: string };

const URL = 'http://localhost/mcp';
/** Tools of which a session over HTTP calls one that asks once. */
const ASKING: ReadonlySet<string> = new Set(['job', 'maybe', 'pay', 'chart']);

export class WebClient implements Player {
  readonly #who: Who;
  readonly #around: Around;
  readonly #name: string;
  #fetch: Fetch | undefined;
  #random: Random | undefined;
  #session: Session = { state: 'none' };
  #calls = new Map<number, Call>();
  /** Ids of events, of all its streams: each is given once. */
  #eventIds = new Set<string>();
  /** Questions that are open: the nonce that they are about. */
  readonly #asked = new Map<string | number, string>();
  /** All that this session was ever asked. */
  readonly #askIds = new Map<string | number, string>();
  /** What breaks with the connections that are open now. */
  #breaks = new AbortController();
  #last = 0;
  #sessions = 0;

  constructor(who: Who, around: Around) {
    this.#who = who;
    this.#around = around;
    this.#name = `${who.owner}(http)`;
  }

  get connected(): boolean {
    return this.#fetch !== undefined;
  }

  connect(fetch: Fetch, random: Random): void {
    this.#fetch = fetch;
    this.#random = random;
    if (this.#session.state === 'none' || this.#session.state === 'ended') this.#open();
    else if (this.#session.state === 'open') this.#comeBack();
  }

  lose(): void {
    this.#fetch = undefined;
    this.#break(false);
  }

  /** @param told the server notices: otherwise it is gone itself */
  #break(told: boolean): void {
    const broken = this.#breaks;
    this.#breaks = new AbortController();
    if (told) broken.abort();
    if (this.#session.state === 'opening') this.#session = { state: 'none' };
    for (const call of this.#calls.values()) {
      if (call.stream) call.stream.reading = false;
      // The stream began, but no event of it came: there is none to go on from.
      if (call.answered === undefined && !call.stream?.events.length) call.lost = true;
    }
  }

  act(act: Extract<Act, { readonly client: number }>): void {
    if (!this.#fetch) return;
    if (act.type === 'cut') {
      this.#break(true);
      return this.#around.count('storm');
    }
    const { state } = this.#session;
    if (state === 'none') return this.#open();
    if (state !== 'open') return;
    switch (act.type) {
      case 'call':
        return this.#call(ASKING.has(act.tool) ? 'ask' : act.tool, act);
      case 'burst':
        for (let call = 0; call < act.calls; call += 1) this.#call('slow', { ms: act.ms, heeds: true });
        return;
      case 'cancel': {
        const open = this.#pending();
        const call = open[act.pick % Math.max(1, open.length)];
        if (!call) return;
        call.cancelled = true;
        this.#tell({ method: 'notifications/cancelled', params: { requestId: call.id } });
        return;
      }
      case 'reply':
        return this.#reply(act.reply);
      case 'resume':
      case 'watch':
        return this.#comeBack();
      case 'repeat':
        return this.#repeat(act.pick);
      case 'leave':
        return this.#end();
    }
  }

  resume(): void {}

  goOn(): void {
    if (!this.#fetch) return;
    if (this.#session.state === 'none' || this.#session.state === 'ended') return this.#open();
    if (this.#session.state !== 'open') return;
    this.#comeBack();
    while (this.#asked.size > 0) this.#reply('accept');
  }

  owed(): readonly string[] {
    if (this.#session.state === 'opening') return [`${this.#name}: initialize`];
    return this.#pending().map(({ id, nonce }) => `${this.#name}: tools/call ${id} (${nonce})`);
  }

  lookAt(): void {}

  reaches(): boolean {
    return false;
  }

  unheard(): readonly string[] {
    return [];
  }

  unhear(): void {}

  checkBounds(): void {}

  /** Calls whose answer can still be heard. */
  #pending(): readonly Call[] {
    return [...this.#calls.values()].filter(
      ({ answered, cancelled, lost }) => answered === undefined && !cancelled && !lost,
    );
  }

  #open(): void {
    this.#sessions += 1;
    this.#session = { state: 'opening' };
    this.#calls = new Map();
    this.#eventIds = new Set();
    this.#asked.clear();
    this.#askIds.clear();
    this.#last = 0;
    const params = {
      protocolVersion: this.#who.revision,
      capabilities: { elicitation: {} },
      clientInfo: { name: this.#name, version: '1.0.0' },
    };
    const text = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    const since = this.#around.clock.now();
    this.#exchange('POST', text, {}, async (response) => {
      const id = response.headers.get('mcp-session-id');
      const body = await response.text();
      this.#hearsCanaries(body);
      if (response.status !== 200 || id === null) {
        this.#session = { state: 'none' };
        if (!this.#excused(since, response.status))
          this.#around.violated(`answers: ${this.#name}: initialize was answered ${response.status} ${body}`);
        return;
      }
      this.#session = { state: 'open', id, since: this.#around.generation() };
      this.#tell({ method: 'notifications/initialized' });
    });
  }

  /** Whether the disk, or the end of the process, explains a refusal. */
  #excused(since: number, status: number): boolean {
    return status === 503 || (status >= 500 && this.#around.faultySince(since));
  }

  #call(tool: string, { ms, heeds }: { readonly ms: number; readonly heeds: boolean }): void {
    this.#last += 1;
    const id = this.#last;
    const nonce = `n${id}s${this.#sessions}${this.#who.owner}w`;
    const args: ToolArgs = { nonce, canary: `canary-${this.#who.owner}-${nonce}`, ms, heeds };
    const params = { name: tool, arguments: { ...args }, _meta: { progressToken: id } };
    const text = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
    const sent = this.#around.clock.now();
    const call: Call = {
      id,
      text,
      tool,
      nonce,
      sent,
      generation: this.#around.generation(),
      answered: undefined,
      lost: false,
      cancelled: false,
      stream: undefined,
    };
    this.#calls.set(id, call);
    this.#post(call);
  }

  /** The same request again, under the same id: it is not executed again. */
  #repeat(pick: number): void {
    const again = [...this.#calls.values()].filter(
      ({ lost, cancelled, answered }) => !cancelled && (lost || answered?.includes('"result"') === true),
    );
    const call = again[pick % Math.max(1, again.length)];
    if (!call) return;
    this.#around.count('sent again');
    this.#post(call);
  }

  #post(call: Call): void {
    this.#exchange('POST', call.text, {}, async (response) => {
      const type = response.headers.get('content-type') ?? '';
      if (response.status === 200 && type.startsWith('text/event-stream')) {
        // A call that is sent again is answered on another stream.
        const stream: Stream = { events: [], call, reading: true };
        call.stream = stream;
        call.lost = false;
        return this.#read(response, stream, 0);
      }
      const body = await response.text();
      this.#hearsCanaries(body);
      if (this.#isGone(response.status)) return;
      const message: unknown = body.startsWith('{') ? JSON.parse(body) : undefined;
      // A refusal of the transport's has no id.
      const refused = isObject(message) && message.id === undefined && this.#excused(call.sent, response.status);
      if (!refused && isObject(message) && (isObject(message.result) || isObject(message.error)))
        return this.#answered(call, message);
      if (response.status === 202 && call.cancelled) return;
      if (response.status === 429 || this.#excused(call.sent, response.status)) {
        call.lost = true;
        return;
      }
      this.#around.violated(`answers: ${this.#name}: ${call.nonce} was answered ${response.status} ${body}`);
    });
  }

  /** I1: a session that was opened is there, in whatever process, until its client ends it. */
  #isGone(status: number): boolean {
    if (status !== 404) return false;
    const session = this.#session;
    this.#session = { state: 'none' };
    if (session.state === 'open') this.#around.violated(`I1: the session of ${this.#name} is gone`);
    return true;
  }

  #tell(message: JsonObject): void {
    const sent = this.#around.clock.now();
    this.#exchange('POST', JSON.stringify({ jsonrpc: '2.0', ...message }), {}, async (response) => {
      const body = await response.text();
      if (response.status === 202 || this.#isGone(response.status) || this.#excused(sent, response.status)) return;
      this.#around.violated(`answers: ${this.#name}: a notification was answered ${response.status} ${body}`);
    });
  }

  #reply(reply: Reply): void {
    const [asked] = this.#asked;
    if (!asked) return;
    const [id, nonce] = asked;
    this.#asked.delete(id);
    const content = { word: wordFor(`canary-${this.#who.owner}-${nonce}`) };
    this.#tell({ id, result: reply === 'accept' ? { action: reply, content } : { action: reply } });
  }

  /** Goes on with every stream that broke off; sometimes from an event that it has seen already. */
  #comeBack(): void {
    for (const { stream, answered } of this.#calls.values()) {
      if (!stream || stream.reading || stream.events.length === 0) continue;
      if (answered !== undefined && !this.#random?.chance(0.2)) continue;
      const from = this.#random?.chance(0.3) ? this.#random.below(stream.events.length) : stream.events.length - 1;
      const event = stream.events[from];
      if (!event) continue;
      stream.reading = true;
      this.#around.trace(`${this.#name} goes on with ${stream.call.nonce} after event ${from}`);
      this.#exchange('GET', undefined, { 'last-event-id': event.id }, async (response) => {
        if (response.status === 200) {
          this.#around.count('stream resumed');
          return this.#read(response, stream, from + 1);
        }
        const body = await response.text();
        stream.reading = false;
        // A stream that has said its last has nothing more to say.
        if (response.status === 204 && (stream.call.answered !== undefined || stream.call.cancelled)) return;
        if (this.#isGone(response.status) || this.#excused(stream.call.sent, response.status)) return;
        // It is being read still, as far as the server knows; or its process is ending.
        if (response.status === 409) return;
        this.#around.violated(
          `I2: ${this.#name}: the stream of ${stream.call.nonce} does not go on: ${response.status} ${body}`,
        );
      });
    }
  }

  /** Ends the session. */
  #end(): void {
    const session = this.#session;
    if (session.state !== 'open') return;
    const sent = this.#around.clock.now();
    this.#exchange('DELETE', undefined, {}, async (response) => {
      if (response.status === 200 || response.status === 204 || response.status === 202) {
        return this.#probe(session.id);
      }
      if (this.#isGone(response.status) || this.#excused(sent, response.status)) return;
      this.#around.violated(`answers: ${this.#name}: DELETE was answered ${response.status}`);
    });
    this.#session = { state: 'ended', id: session.id };
    this.#calls = new Map();
  }

  #probe(id: string): void {
    const text = JSON.stringify({ jsonrpc: '2.0', id: 9_999, method: 'ping' });
    const sent = this.#around.clock.now();
    this.#exchange('POST', text, { 'mcp-session-id': id }, async (response) => {
      if (response.status === 404) return this.#around.count('ended for good');
      if (this.#excused(sent, response.status)) return;
      this.#around.violated(`I6: the session of ${this.#name} had ended, and answers ${response.status}`);
    });
  }

  #exchange(
    method: 'GET' | 'POST' | 'DELETE',
    body: string | undefined,
    more: Readonly<Record<string, string>>,
    heard: (response: Response) => Promise<void> | void,
  ): void {
    const { signal } = this.#breaks;
    const breaks = this.#breaks;
    const session = this.#session;
    const headers = {
      accept: 'application/json, text/event-stream',
      authorization: this.#who.principal ?? '',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(session.state === 'open' ? { 'mcp-session-id': session.id, 'mcp-protocol-version': this.#who.revision } : {}),
      ...more,
    };
    this.#around.trace(`${this.#name} > ${method} ${body ?? ''}`);
    const request = new Request(URL, { method, headers, signal, ...(body === undefined ? {} : { body }) });
    const listen = async (): Promise<void> => {
      const response = await this.#fetch?.(request);
      if (!response || breaks !== this.#breaks) return;
      this.#around.trace(`${this.#name} < ${response.status}`);
      await heard(response);
    };
    // What breaks off is told nobody.
    listen().catch((error: unknown) => {
      if (breaks === this.#breaks) this.#around.trace(`${this.#name}: ${String(error)}`);
    });
  }

  async #read(response: Response, stream: Stream, from: number): Promise<void> {
    const breaks = this.#breaks;
    const decoder = new TextDecoder();
    let at = from;
    let rest = '';
    const reader = response.body?.getReader();
    while (reader) {
      const { done, value } = await reader.read();
      if (breaks !== this.#breaks) return;
      if (done) break;
      rest += decoder.decode(value, { stream: true });
      const blocks = rest.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) at = this.#event(stream, at, block);
    }
    stream.reading = false;
  }

  /** I2: an event of a stream that was heard before is the same when it is heard again, and what is new has an id of its own. */
  #event(stream: Stream, at: number, block: string): number {
    const { violated, trace } = this.#around;
    const id = /^id: (.*)$/m.exec(block)?.[1];
    const data = /^data: (.*)$/m.exec(block)?.[1] ?? '';
    if (id === undefined && data === '') return at;
    trace(`${this.#name} < event of ${stream.call.nonce}: ${data}`);
    this.#hearsCanaries(data);
    if (id === undefined) {
      violated(`I2: ${this.#name}: an event of ${stream.call.nonce} has no id: ${data}`);
      return at;
    }
    const before = stream.events[at];
    if (before) {
      if (before.id !== id || before.data !== data)
        violated(`I2: ${this.#name}: event ${at} of ${stream.call.nonce} was ${before.data}, and is ${data}`);
      return at + 1;
    }
    if (this.#eventIds.has(id)) violated(`I2: ${this.#name}: ${stream.call.nonce}: the id ${id} was given twice`);
    this.#eventIds.add(id);
    stream.events.push({ id, data });
    if (data !== '') this.#hears(stream.call, data);
    return at + 1;
  }

  #hears(call: Call, data: string): void {
    const message: unknown = JSON.parse(data);
    if (!isObject(message)) return this.#around.violated(`answers: ${this.#name} was sent ${data}`);
    const { id, method, params } = message;
    if (method === 'elicitation/create' && (typeof id === 'string' || typeof id === 'number')) {
      const [, nonce] = /for (n\w+)\?/.exec(JSON.stringify(params)) ?? [];
      if (nonce !== call.nonce) this.#around.violated(`I4: ${this.#name}: ${call.nonce} was asked ${data}`);
      // An answer to the first would be taken for one to the second.
      const before = this.#askIds.get(id);
      if (before !== undefined)
        this.#around.violated(`answers: ${this.#name}: ${String(id)} asked for ${before}, and asks for ${call.nonce}`);
      this.#askIds.set(id, call.nonce);
      this.#asked.set(id, call.nonce);
      return this.#around.count('asked');
    }
    if (method === undefined) this.#answered(call, message);
  }

  #answered(call: Call, message: Readonly<Record<string, unknown>>): void {
    const { violated, count, faultySince, generation } = this.#around;
    const text = JSON.stringify(message);
    if (message.id !== call.id)
      return violated(`I4: ${this.#name}: ${call.nonce} (${call.id}) was answered with ${text}`);
    const error = isObject(message.error) ? message.error : undefined;
    // A call that is sent again while it runs is refused, and that is not its answer.
    if (error?.code === -32600) {
      call.lost = true;
      return count('repeat refused');
    }
    // Nor is that there is no room for a repetition: it may be sent once more.
    if (call.answered !== undefined && error?.code === -31001) return count('busy');
    if (call.answered !== undefined && call.answered !== text && faultySince(call.sent)) return;
    if (call.answered !== undefined && call.answered !== text)
      violated(`answers: ${this.#name}: ${call.nonce} was answered ${call.answered}, and then ${text}`);
    call.answered = text;
    call.lost = false;
    if (error) {
      // Its process is gone, and with it what it would have come to.
      const died = call.generation < generation();
      if (error.code === -32603 && !died && !faultySince(call.sent))
        violated(`answers: ${this.#name}: ${call.nonce} was answered ${text}`);
      return count('busy');
    }
    count('answered');
    const { result } = message;
    if (!isObject(result) || (result.isError === true && call.tool !== 'trip')) return;
    if (!text.includes(`"${call.nonce} canary-${this.#who.owner}-${call.nonce} `))
      return violated(`I4: ${this.#name}: ${call.nonce} was answered ${text}`);
    const [, entry] = /entry (\d+)"/.exec(text) ?? [];
    if (entry !== undefined) this.#around.book.deposited(Number(entry), call.nonce);
  }

  #hearsCanaries(text: string): void {
    for (const [canary, owner] of text.matchAll(/canary-([a-z]+)-/g))
      if (owner !== this.#who.owner)
        this.#around.violated(`I4: ${this.#name} was told what is another's: ${canary} in ${text}`);
  }
}
