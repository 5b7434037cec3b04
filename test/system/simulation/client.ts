/** A client of a simulated world: it does what the plan says, believes what it is told, and knows what it must not be told. */

import { isObject, type JsonObject, type JsonValue } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { TASKS_EXTENSION } from '../../../src/core/protocol/task-params.ts';
import type { MemoryPeer } from '../../../src/index.ts';
import { isTerminal, type KnownTask } from './book.ts';
import type { KnownHandle } from './handles.ts';
import type { Act, HandleAct, Reply, ToolName } from './plan.ts';
import type { Around, Player } from './player.ts';
import type { Random } from './random.ts';
import { type Era, eraOf, hasTasks, type Who } from './roster.ts';
import { type ToolArgs, wordFor } from './tools.ts';

/** What a request is about. */
type Purpose =
  | { readonly kind: 'initialize' }
  | { readonly kind: 'tool'; readonly tool: ToolName; readonly args: ToolArgs; readonly from: Parked | undefined }
  | { readonly kind: 'task'; readonly what: 'get' | 'cancel' | 'result'; readonly task: KnownTask }
  | { readonly kind: 'update'; readonly task: KnownTask; readonly keys: readonly string[] }
  | { readonly kind: 'tasks' }
  /** It asks for what is not its own. */
  | { readonly kind: 'pry'; readonly nonce: string }
  | {
      readonly kind: 'handle';
      readonly what: HandleAct;
      readonly handle: KnownHandle | undefined;
      readonly nonce: string;
      /** What had been acknowledged to be in it when this was asked. */
      readonly before: ReadonlySet<string>;
    }
  | { readonly kind: 'listen'; readonly uri: string }
  | { readonly kind: 'subscribe'; readonly uri: string };

interface Call {
  readonly id: number;
  readonly method: string;
  readonly purpose: Purpose;
  readonly text: string;
  readonly sent: number;
  /** It is at the server. */
  arrived: boolean;
  cancelled: boolean;
  answered: boolean;
  /** Its progress goes on although it is answered: it has become a task. */
  detached: boolean;
  /** Refusals that are owed for having been sent again. */
  repeats: number;
  progress: number;
}

/** A modern request that was answered with questions. */
interface Parked {
  readonly tool: ToolName;
  readonly args: ToolArgs;
  readonly state: string;
  readonly keys: readonly string[];
  /** What had been done when it was handed out, and must not be done again. */
  readonly steps: ReadonlySet<string>;
  readonly generation: number;
}

/** One connection of a client. */
interface Link {
  readonly peer: MemoryPeer;
  readonly delays: { readonly random: Random; readonly most: number };
  readonly name: string;
  readonly calls: Map<number, Call>;
  /** Questions of the server that are open, by id: the nonce that they are about. */
  readonly asked: Map<string | number, string>;
  readonly askIds: Set<string | number>;
  readonly listening: Map<number, { readonly uri: string; acknowledged: boolean }>;
  readonly watched: Set<string>;
  /** Changes that it was told of. */
  readonly heard: Set<string>;
  ready: boolean;
  paused: boolean;
  wasPaused: boolean;
  leaving: boolean;
  last: number;
  /** When the last text that was sent arrives. */
  arrives: number;
}

type Shown = Readonly<Record<string, unknown>>;

/** Codes with which a server may refuse anything: too much of it, too late, or shutting down. */
const BUSY: ReadonlySet<unknown> = new Set([-31001, -31002, -31003]);

export class Client implements Player {
  readonly who: Who;
  readonly era: Era;
  readonly #around: Around;
  readonly #name: string;
  #link: Link | undefined;
  #parked: Parked[] = [];
  #links = 0;
  #calls = 0;

  constructor(who: Who, around: Around) {
    this.who = who;
    this.era = eraOf(who);
    this.#around = around;
    this.#name = `${who.owner}(${who.revision})`;
  }

  get connected(): boolean {
    return this.#link !== undefined;
  }

  connect(peer: MemoryPeer, random: Random, delayMs: number): void {
    this.#links += 1;
    const link: Link = {
      peer,
      delays: { random, most: delayMs },
      name: `${this.#name}/${this.#links}`,
      calls: new Map(),
      asked: new Map(),
      askIds: new Set(),
      listening: new Map(),
      watched: new Set(),
      heard: new Set(),
      ready: this.era === 'modern',
      paused: false,
      wasPaused: false,
      leaving: false,
      last: 0,
      arrives: 0,
    };
    this.#link = link;
    peer.onText((text) => this.#link === link && this.#hears(link, text));
    peer.closed.then((reason) => this.#link === link && this.#closed(link, reason));
    if (this.era === 'legacy') {
      const { revision } = this.who;
      const clientInfo = { name: this.#name, version: '1.0.0' };
      this.#request(
        link,
        'initialize',
        { kind: 'initialize' },
        {
          protocolVersion: revision,
          capabilities: { elicitation: {} },
          clientInfo,
        },
      );
    }
  }

  lose(): void {
    const link = this.#link;
    if (!link) return;
    this.#link = undefined;
    this.#takeBack(link);
  }

  act(act: Extract<Act, { readonly client: number }>, tasks: readonly KnownTask[]): void {
    const link = this.#link;
    if (!link || act.type === 'connect') return;
    switch (act.type) {
      case 'cut':
        this.lose();
        return link.peer.vanish();
      case 'leave':
        if (link.leaving) return;
        link.leaving = true;
        return this.#deliver(link, () => link.peer.close());
      case 'pause':
        link.paused = true;
        link.wasPaused = true;
        return link.peer.pause();
      case 'resume':
        return this.resume();
    }
    if (!link.ready || link.leaving) return;
    switch (act.type) {
      case 'call':
        return this.#callTool(link, act);
      case 'burst':
        for (let call = 0; call < act.calls; call += 1)
          this.#callTool(link, { tool: call % 3 === 0 ? 'ask' : 'slow', ms: act.ms, heeds: true });
        return;
      case 'cancel':
        return this.#cancel(link, nth(this.#inFlight(link), act.pick));
      case 'repeat':
        return this.#repeat(link, nth(this.#inFlight(link), act.pick));
      case 'reply':
        return this.#replyTo(link, act.pick, act.reply, act.twice);
      case 'task':
        return this.#askTask(
          link,
          act.what,
          nth(
            tasks.filter((task) => this.#owns(link, task)),
            act.pick,
          ),
        );
      case 'pry':
        return this.#pry(
          link,
          act.what,
          nth(
            tasks.filter((task) => !this.#mayReach(task)),
            act.pick,
          ),
        );
      case 'handle':
        return this.#handle(link, act.what, act.pick);
      case 'watch':
        return this.#watch(link, act.pick);
    }
  }

  resume(): void {
    const link = this.#link;
    if (!link) return;
    link.paused = false;
    link.peer.resume();
  }

  goOn(tasks: readonly KnownTask[]): void {
    this.resume();
    const link = this.#link;
    if (!link?.ready || link.leaving) return;
    for (const handle of this.#around.handles.waiting())
      if (handle.owner === this.who.owner) this.#handle(link, 'get', this.#placeOf(handle));
    const questions = link.asked.size + this.#parked.length;
    for (let question = 0; question < questions; question += 1) this.#replyTo(link, 0, 'accept', false);
    if (!hasTasks(this.who)) return;
    const open = this.#inFlight(link);
    if (open.length >= this.#around.limits.maxInFlight - 2) return;
    for (const task of tasks.filter((each) => this.#owns(link, each) && !isTerminal(each.status)).slice(0, 2)) {
      const asks = task.status === 'input_required';
      const waits = open.some(({ purpose }) => purpose.kind === 'task' && purpose.what === 'result');
      if (asks && this.era === 'modern' && task.inputs.size > 0) this.#update(link, task, 'accept');
      else if (asks && this.era === 'legacy' && !waits) this.#askTask(link, 'result', task);
      else this.#askTask(link, 'get', task);
    }
  }

  /** Whether it could ask for a task now. */
  reaches(task: KnownTask): boolean {
    const link = this.#link;
    return link?.ready === true && !link.leaving && hasTasks(this.who) && this.#owns(link, task);
  }

  owed(): readonly string[] {
    const link = this.#link;
    if (!link) return [];
    const calls = this.#inFlight(link).filter(({ purpose }) => purpose.kind !== 'listen');
    return calls.map(({ method, id }) => `${link.name}: ${method} ${id}`);
  }

  lookAt(tasks: readonly KnownTask[]): void {
    const link = this.#link;
    if (!link?.ready || link.leaving || !hasTasks(this.who)) return;
    const room = this.#around.limits.maxInFlight - this.#inFlight(link).length;
    for (const task of tasks.filter((each) => this.#owns(link, each)).slice(0, room)) this.#askTask(link, 'get', task);
  }

  unheard(uri: string): readonly string[] {
    const link = this.#link;
    if (!link?.ready || link.leaving) return [];
    const all = [
      ...link.watched,
      ...[...link.listening.values()].flatMap((each) => (each.acknowledged ? each.uri : [])),
    ];
    return all.includes(uri) && !link.heard.has(uri) ? [`${link.name}: ${uri}`] : [];
  }

  unhear(): void {
    this.#link?.heard.clear();
  }

  /** Most that may be in flight at once (I5); where nobody reads, answers are on their way and cannot be counted. */
  checkBounds(): void {
    const link = this.#link;
    if (!link || link.wasPaused) return;
    const { maxInFlight, maxListens } = this.#around.limits;
    const open = this.#inFlight(link).filter(({ arrived }) => arrived);
    if (open.length > maxInFlight + maxListens)
      this.#around.violated(`I5: ${open.length} requests of ${link.name} are in flight, and ${maxInFlight} may be`);
  }

  #inFlight(link: Link): readonly Call[] {
    return [...link.calls.values()].filter(({ answered, cancelled }) => !answered && !cancelled);
  }

  /** A task of somebody without a name belongs to the session, where there is one. */
  #reach(link: Link): string {
    return this.who.principal === undefined && this.era === 'legacy' ? link.name : this.who.owner;
  }

  #owns(link: Link, task: KnownTask): boolean {
    return task.reach === this.#reach(link);
  }

  /** Whoever has no name, and no session, is let to whatever is of such: the id is the key. */
  #mayReach(task: KnownTask): boolean {
    return task.reach.split('(')[0] === this.who.owner;
  }

  #callTool(
    link: Link,
    { tool: wanted, ms, heeds }: Pick<Extract<Act, { readonly type: 'call' }>, 'tool' | 'ms' | 'heeds'>,
  ): void {
    const tool = wanted === 'job' && !hasTasks(this.who) ? 'slow' : wanted;
    this.#calls += 1;
    const nonce = `n${this.#calls}${this.who.owner}${this.era[0]}`;
    const args: ToolArgs = { nonce, canary: `canary-${this.who.owner}-${nonce}`, ms, heeds };
    const params = { name: tool, arguments: { ...args } };
    const asTask = this.era === 'legacy' && tool === 'job' ? { task: { ttl: this.#around.limits.taskTtlMs } } : {};
    this.#request(link, 'tools/call', { kind: 'tool', tool, args, from: undefined }, { ...params, ...asTask });
  }

  #request(link: Link, method: string, purpose: Purpose, params: JsonObject): void {
    link.last += 1;
    const id = link.last;
    const described: JsonObject =
      this.era === 'legacy'
        ? {}
        : {
            [META.protocolVersion]: this.who.revision,
            [META.clientInfo]: { name: this.#name, version: '1.0.0' },
            [META.clientCapabilities]: { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } },
          };
    const _meta = purpose.kind === 'tool' ? { ...described, progressToken: id } : described;
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } });
    const call: Call = {
      id,
      method,
      purpose,
      text,
      sent: this.#around.clock.now(),
      arrived: false,
      cancelled: false,
      answered: false,
      detached: false,
      repeats: 0,
      progress: 0,
    };
    link.calls.set(id, call);
    this.#send(link, text, () => {
      call.arrived = true;
      // Whoever comes back with a state relies on what had been done when it was handed out.
      if (purpose.kind === 'tool' && purpose.from) this.#around.book.owe(purpose.args.nonce, purpose.from.steps);
      return true;
    });
  }

  /** Texts arrive in the order in which they were sent. */
  #deliver(link: Link, arrive: () => void): void {
    const { clock } = this.#around;
    const { random, most } = link.delays;
    link.arrives = Math.max(link.arrives, clock.now() + (most === 0 ? 0 : random.between(0, most)));
    const here = (): void => {
      if (this.#link === link) arrive();
    };
    if (link.arrives === clock.now()) here();
    else clock.after(link.arrives - clock.now(), here);
  }

  /** @param wanted asked when it arrives: whether it is to be heard */
  #send(link: Link, text: string, wanted: () => boolean): void {
    this.#deliver(link, () => {
      if (!wanted()) return;
      this.#around.trace(`${link.name} > ${text}`);
      link.peer.send(text);
    });
  }

  #notify(link: Link, method: string, params: JsonObject, wanted: () => boolean = () => true): void {
    this.#send(link, JSON.stringify({ jsonrpc: '2.0', method, params }), wanted);
  }

  #cancel(link: Link, call: Call | undefined): void {
    if (!call || call.method === 'initialize') return;
    const meta = this.era === 'modern' ? { _meta: { [META.protocolVersion]: this.who.revision } } : {};
    this.#notify(link, 'notifications/cancelled', { requestId: call.id, reason: 'not wanted', ...meta }, () => {
      call.cancelled = true;
      link.listening.delete(call.id);
      return true;
    });
  }

  /** Only while it is in flight: afterwards its id names another request. */
  #repeat(link: Link, call: Call | undefined): void {
    if (!call || call.method === 'initialize') return;
    this.#send(link, call.text, () => {
      if (call.answered || call.cancelled || !call.arrived || link.wasPaused) return false;
      call.repeats += 1;
      return true;
    });
  }

  /** Answers one of the questions that are open: of its session, of a request that waits for it, or of a task. */
  #replyTo(link: Link, pick: number, reply: Reply, twice: boolean): void {
    const [asked] = [...link.asked].slice(pick % Math.max(1, link.asked.size));
    if (asked) {
      const [id, nonce] = asked;
      link.asked.delete(id);
      const result = this.#answer(nonce, reply);
      const text = JSON.stringify({ jsonrpc: '2.0', id, result });
      for (let times = twice ? 2 : 1; times > 0; times -= 1) this.#send(link, text, () => true);
      return;
    }
    const parked = nth(this.#parked, pick);
    if (parked) {
      this.#parked = this.#parked.filter((other) => other !== parked);
      for (let times = twice ? 2 : 1; times > 0; times -= 1) this.#retry(link, parked, reply);
      return;
    }
    const { book } = this.#around;
    const asking = [...book.tasks.values()].filter((task) => task.inputs.size > 0 && this.#owns(link, task));
    const task = this.era === 'modern' ? nth(asking, pick) : undefined;
    if (task) this.#update(link, task, reply);
  }

  #retry(link: Link, parked: Parked, reply: Reply): void {
    const { tool, args, state, keys } = parked;
    const answers = Object.fromEntries(keys.map((key) => [key, this.#answer(args.nonce, reply)]));
    const params = { name: tool, arguments: { ...args }, requestState: state, inputResponses: answers };
    this.#request(link, 'tools/call', { kind: 'tool', tool, args, from: parked }, params);
  }

  #update(link: Link, task: KnownTask, reply: Reply): void {
    const keys = [...task.inputs.keys()];
    const answers = Object.fromEntries(keys.map((key) => [key, this.#answer(task.nonce, reply)]));
    const params = { taskId: task.id, inputResponses: answers };
    task.inputs = new Map();
    this.#request(link, 'tasks/update', { kind: 'update', task, keys }, params);
  }

  #answer(nonce: string, reply: Reply): JsonObject {
    if (reply !== 'accept') return { action: reply };
    return { action: 'accept', content: { word: wordFor(`canary-${this.who.owner}-${nonce}`) } };
  }

  #askTask(link: Link, what: 'get' | 'cancel' | 'list' | 'result', task: KnownTask | undefined): void {
    if (!hasTasks(this.who)) return;
    const listed = what === 'list' && this.era === 'legacy';
    if (listed) return this.#request(link, 'tasks/list', { kind: 'tasks' }, {});
    if (!task || what === 'list' || (what === 'result' && this.era === 'modern')) return;
    this.#request(link, `tasks/${what}`, { kind: 'task', what, task }, { taskId: task.id });
  }

  #pry(link: Link, what: 'get' | 'cancel' | 'result', task: KnownTask | undefined): void {
    if (!task || !hasTasks(this.who) || (what === 'result' && this.era === 'modern')) return;
    // Of two that nobody knows, who has the id of a task has the task.
    if (this.who.principal === undefined && !['ann', 'bob'].includes(task.reach)) return;
    this.#request(link, `tasks/${what}`, { kind: 'pry', nonce: task.nonce }, { taskId: task.id });
  }

  /** Before 2025-06-18 a result has no data, and what is in a handle would have to be read from words. */
  #handle(link: Link, wanted: HandleAct, pick: number): void {
    const { handles } = this.#around;
    if (this.who.revision === '2025-03-26') return;
    const all = [...handles.handles.values()].filter(({ ended }) => !ended);
    const own = all.filter(({ owner }) => owner === this.who.owner);
    const others = all.filter(({ owner }) => owner !== this.who.owner && ['ann', 'bob'].includes(owner));
    if (wanted === 'pry' && others.length === 0) return;
    const what = own.length === 0 && wanted !== 'pry' ? 'create' : wanted;
    const handle = what === 'create' ? undefined : nth(what === 'pry' ? others : own, pick);
    this.#calls += 1;
    const nonce = `h${this.#calls}${this.who.owner}${this.era[0]}`;
    const canary = `canary-${this.who.owner}-${nonce}`;
    const args: Readonly<Record<HandleAct, JsonObject>> = {
      create: { canary },
      add: { nonce },
      arm: {},
      get: {},
      end: {},
      pry: {},
    };
    const name = `tally_${what === 'pry' ? 'get' : what}`;
    const before = new Set(handle?.added);
    const purpose: Purpose = { kind: 'handle', what, handle, nonce, before };
    if (what === 'add') handle?.sent.add(nonce);
    if (what === 'arm' && handle) handle.armsSent += 1;
    if (what === 'end' && handle) handle.ended = true;
    const of = handle ? { handle: handle.id } : {};
    this.#request(link, 'tools/call', purpose, { name, arguments: { ...args[what], ...of } });
  }

  #placeOf(handle: KnownHandle): number {
    const { handles } = this.#around;
    return [...handles.handles.values()].filter(({ owner, ended }) => owner === handle.owner && !ended).indexOf(handle);
  }

  #handled(link: Link, purpose: Extract<Purpose, { readonly kind: 'handle' }>, call: Call, result: Shown): void {
    const { handles, violated, count, generation, faultySince } = this.#around;
    const { what, handle, nonce, before } = purpose;
    const shown = result.structuredContent;
    if (what === 'pry') {
      if (result.isError === true) return count('kept from others');
      return violated(`I4: ${link.name} was let to a handle of ${handle?.owner}: ${JSON.stringify(result)}`);
    }
    if (result.isError === true || !isObject(shown)) {
      // It waits already, or was ended meanwhile; or the disk could not keep it.
      if (what === 'arm' || handle?.ended || faultySince(call.sent)) return;
      return violated(`I1: ${link.name}: ${what} of a handle was refused: ${JSON.stringify(result)}`);
    }
    const known = handle ?? handles.created(String(shown.handle), this.who.owner, generation());
    count(known.generation < generation() ? 'handle in another process' : 'handle');
    if (what === 'end') return;
    if (what === 'add') known.added.add(nonce);
    if (what === 'arm') known.armsTaken += 1;
    handles.looked(known, shown, before);
  }

  #watch(link: Link, pick: number): void {
    const uri = `doc://${pick % 3}`;
    if (this.era === 'legacy') {
      this.#request(link, 'resources/subscribe', { kind: 'subscribe', uri }, { uri });
      return;
    }
    const open = this.#inFlight(link).find(({ purpose }) => purpose.kind === 'listen');
    if (open && pick % 2 === 0) return this.#cancel(link, open);
    const notifications = { toolsListChanged: true, resourceSubscriptions: [uri] };
    link.listening.set(link.last + 1, { uri, acknowledged: false });
    this.#request(link, 'subscriptions/listen', { kind: 'listen', uri }, { notifications });
  }

  /** The connection is closed, and what was in flight will not be answered. */
  #closed(link: Link, reason: string): void {
    this.#around.trace(`${link.name} is closed: ${reason}`);
    this.#link = undefined;
    const owed = this.#inFlight(link).filter(({ arrived }) => arrived);
    if (owed.length > 0)
      this.#around.violated(
        `I7: ${link.name} was closed (${reason}), and ${owed.map(({ method }) => method).join(', ')} was never answered`,
      );
    this.#takeBack(link);
  }

  /** What it came back with was not answered: it can come back with it again. */
  #takeBack(link: Link): void {
    for (const { purpose } of this.#inFlight(link))
      if (purpose.kind === 'tool' && purpose.from) this.#parked.push(purpose.from);
  }

  #hears(link: Link, text: string): void {
    const { trace, violated } = this.#around;
    trace(`${link.name} < ${text}`);
    for (const [canary, owner] of text.matchAll(/canary-([a-z]+)-/g))
      if (owner !== this.who.owner) violated(`I4: ${link.name} was told what is another's: ${canary} in ${text}`);
    const message: unknown = JSON.parse(text);
    if (!isObject(message)) return violated(`answers: ${link.name} was sent what is no message: ${text}`);
    const { id, method, params } = message;
    if (typeof method !== 'string') return this.#answered(link, message);
    const given = isObject(params) ? params : {};
    if (typeof id === 'string' || typeof id === 'number') this.#isAsked(link, id, method, given);
    else this.#isTold(link, method, given);
  }

  #isAsked(link: Link, id: string | number, method: string, params: Readonly<Record<string, unknown>>): void {
    if (link.askIds.has(id)) this.#around.violated(`answers: ${link.name} was asked twice under the id ${String(id)}`);
    link.askIds.add(id);
    if (method !== 'elicitation/create') return;
    link.asked.set(id, nonceIn(params));
    this.#around.count('asked');
  }

  #isTold(link: Link, method: string, params: Readonly<Record<string, unknown>>): void {
    const { violated } = this.#around;
    const meta = isObject(params._meta) ? params._meta : {};
    const of = meta[META.subscriptionId];
    const listening = typeof of === 'number' ? link.listening.get(of) : undefined;
    const call = typeof of === 'number' ? link.calls.get(of) : undefined;
    // What had been written before the client cancelled may come after it.
    const unwanted = this.era === 'modern' && !listening && !call?.cancelled;
    switch (method) {
      case 'notifications/progress':
        return this.#progressed(link, params);
      case 'notifications/subscriptions/acknowledged':
        if (listening) listening.acknowledged = true;
        if (unwanted) violated(`answers: ${link.name} was told of a subscription that it has not: ${String(of)}`);
        return;
      case 'notifications/resources/updated': {
        const { uri } = params;
        const wanted = this.era === 'legacy' ? link.watched.has(String(uri)) : listening?.uri === uri;
        if (!wanted && !call?.cancelled)
          violated(`answers: ${link.name} was told of ${String(uri)}, which it does not watch`);
        if (listening && !listening.acknowledged)
          violated(`I2: ${link.name} was told of a change before its subscription`);
        link.heard.add(String(uri));
        return this.#around.count('told of a change');
      }
      case 'notifications/tools/list_changed':
        if (unwanted) violated(`answers: ${link.name} was told of a list that it does not watch`);
        return;
      case 'notifications/cancelled': {
        const { requestId } = params;
        if (typeof requestId === 'string' || typeof requestId === 'number') link.asked.delete(requestId);
      }
    }
  }

  #progressed(link: Link, { progressToken, progress }: Readonly<Record<string, unknown>>): void {
    const { violated } = this.#around;
    const call = typeof progressToken === 'number' ? link.calls.get(progressToken) : undefined;
    if (!call)
      return violated(`answers: ${link.name} was told of progress of ${String(progressToken)}, which it never asked`);
    if (call.answered && !call.detached)
      violated(`I2: ${link.name}: ${call.method} ${call.id} goes on after its answer`);
    if (typeof progress !== 'number' || progress <= call.progress)
      return violated(`I2: ${link.name}: progress of ${call.id} went from ${call.progress} to ${String(progress)}`);
    call.progress = progress;
  }

  #answered(link: Link, message: Readonly<Record<string, unknown>>): void {
    const { violated } = this.#around;
    const call = typeof message.id === 'number' ? link.calls.get(message.id) : undefined;
    const error = isObject(message.error) ? message.error : undefined;
    if (!call) return violated(`answers: ${link.name} was answered what it never asked: ${JSON.stringify(message)}`);
    if (call.repeats > 0 && error?.code === -32600) {
      call.repeats -= 1;
      return this.#around.count('repeat refused');
    }
    if (call.answered) return violated(`answers: ${link.name}: ${call.method} ${call.id} was answered twice`);
    call.answered = true;
    link.listening.delete(call.id);
    if (error) return this.#failed(link, call, error);
    if (!isObject(message.result)) return violated(`answers: ${JSON.stringify(message)} is no answer`);
    this.#succeeded(link, call, message.result);
  }

  #failed(
    link: Link,
    { purpose, sent, method, cancelled }: Call,
    { code, message }: Readonly<Record<string, unknown>>,
  ): void {
    const { violated, faultySince, book, clock } = this.#around;
    if (cancelled || BUSY.has(code)) {
      if (BUSY.has(code)) this.#around.count('busy');
      if (purpose.kind === 'tool' && purpose.from && code === -31001) this.#parked.push(purpose.from);
      return;
    }
    if (code === -32603 && faultySince(sent)) return this.#around.count('failed with the disk');
    switch (purpose.kind) {
      case 'pry':
        if (code === -32602) return this.#around.count('kept from others');
        break;
      case 'tool':
        // Its state was taken before, or its question is no longer open.
        if (code === -32602 && purpose.from) return this.#around.count('state refused');
        break;
      case 'task':
      case 'update': {
        const { task } = purpose;
        // 2025-11-25 refuses to cancel what has ended, and tells an error of what was cancelled as its result.
        if (purpose.kind === 'task' && purpose.what === 'cancel' && !String(message).includes('unknown task')) return;
        if (purpose.kind === 'task' && purpose.what === 'result' && code === -32600) return;
        if (clock.now() >= task.until) return;
        if (!book.tasks.has(task.id)) return;
        return violated(`I1: ${link.name}: the task of ${task.nonce} is not there: ${String(message)}`);
      }
      case 'handle':
      case 'listen':
      case 'subscribe':
      case 'tasks':
      case 'initialize':
        break;
    }
    violated(`answers: ${link.name}: ${method} was answered with ${String(code)} ${String(message)}`);
  }

  #succeeded(link: Link, call: Call, result: Readonly<Record<string, unknown>>): void {
    const { purpose } = call;
    const { violated, book } = this.#around;
    switch (purpose.kind) {
      case 'initialize':
        link.ready = true;
        return this.#notify(link, 'notifications/initialized', {});
      case 'tool':
        return this.#toolDone(link, call, purpose, result);
      case 'task':
        if (purpose.what === 'result') {
          // It has ended; as what, is asked for.
          purpose.task.status = 'working';
          return this.#isResult(purpose.task.nonce, result, 'job');
        }
        if (this.era === 'modern' && purpose.what === 'cancel') return;
        return this.#looked(purpose.task, result);
      case 'handle':
        return this.#handled(link, purpose, call, result);
      case 'update':
        for (const key of purpose.keys) purpose.task.answered.add(key);
        return;
      case 'tasks':
        for (const each of isArray(result.tasks) ? result.tasks : []) {
          const task = isObject(each) ? book.tasks.get(String(each.taskId)) : undefined;
          if (task && !this.#owns(link, task)) violated(`I4: ${link.name} is shown a task of ${task.reach}`);
        }
        return;
      case 'pry':
        return violated(`I4: ${link.name} was let to the task of ${purpose.nonce}`);
      case 'subscribe':
        link.watched.add(purpose.uri);
        return;
      case 'listen':
        return;
    }
  }

  #toolDone(
    link: Link,
    call: Call,
    { tool, args }: Extract<Purpose, { readonly kind: 'tool' }>,
    result: Readonly<Record<string, unknown>>,
  ): void {
    const { book, clock, limits } = this.#around;
    const { nonce } = args;
    if (result.resultType === 'input_required') {
      const requests = isObject(result.inputRequests) ? result.inputRequests : {};
      const state = String(result.requestState);
      const steps = book.steps(nonce);
      this.#parked.push({
        tool,
        args,
        state,
        keys: Object.keys(requests),
        steps,
        generation: this.#around.generation(),
      });
      this.#around.count('asked');
      if (nonceIn(requests) !== nonce)
        this.#around.violated(`I4: ${link.name}: ${nonce} was asked ${JSON.stringify(requests)}`);
      return;
    }
    const shown = isObject(result.task) ? result.task : result;
    if (typeof shown.taskId === 'string') {
      call.detached = true;
      const until = clock.now() + limits.taskTtlMs;
      book.created({
        id: shown.taskId,
        reach: this.#reach(link),
        nonce,
        until,
        status: shown.status,
        generation: this.#around.generation(),
      });
      this.#around.count('became a task');
      return;
    }
    const { from } = call.purpose.kind === 'tool' ? call.purpose : { from: undefined };
    if (from)
      this.#around.count(from.generation < this.#around.generation() ? 'resumed in another process' : 'resumed');
    else this.#around.count('answered');
    this.#isResult(nonce, result, tool);
  }

  /** What a tool came to says which call it is about, unless it failed. */
  #isResult(nonce: string, result: Readonly<Record<string, unknown>>, tool: ToolName): void {
    const { violated, book } = this.#around;
    const [block]: readonly unknown[] = isArray(result.content) ? result.content : [];
    const text = isObject(block) && typeof block.text === 'string' ? block.text : '';
    if (result.isError === true && tool !== 'trip') return;
    if (!text.startsWith(`${nonce} canary-${this.who.owner}-${nonce} `))
      return violated(`I4: ${this.#name}: ${nonce} was answered "${text}"`);
    const [, entry] = /entry (\d+)$/.exec(text) ?? [];
    if (entry !== undefined) book.deposited(Number(entry), nonce);
  }

  #looked(task: KnownTask, shown: Readonly<Record<string, unknown>>): void {
    const { book, generation, count } = this.#around;
    if (isTerminal(shown.status))
      count(task.generation < generation() ? 'task ended in another process' : 'task ended');
    const { taskId: _id, _meta, inputRequests, ...rest } = shown;
    book.looked(task, this.era, shown.status, JSON.stringify(rest));
    if (this.era === 'modern') book.asks(task, new Map(Object.entries(isObject(inputRequests) ? inputRequests : {})));
    if (isObject(shown.result) && shown.status === 'completed') this.#isResult(task.nonce, shown.result, 'job');
  }
}

function nth<T>(from: readonly T[], pick: number): T | undefined {
  return from.length === 0 ? undefined : from[pick % from.length];
}

function nonceIn(said: object): string {
  const [, nonce] = /for (n\w+)\?/.exec(JSON.stringify(said)) ?? [];
  return nonce ?? '';
}

function isArray(value: unknown): value is readonly JsonValue[] {
  return Array.isArray(value);
}
