/**
 * Admits requests: asks the rules of the server and of the elements that a request uses, before anything of it is
 * stored, sent or run. The one place through which the requests of every era and transport pass.
 */

import type { RequestGate, Stages } from '../../../core/execution/stages.ts';
import type { ActorSystem } from '../../../core/kernel/actor-system.ts';
import type { Timer } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { fieldsOf } from '../../../core/kernel/operator-log.ts';
import type { Denial } from '../../../core/kernel/telemetry/metrics.ts';
import type { Auth } from '../../../core/messages/auth.ts';
import type {
  AuthorizationDecision,
  AuthorizationRule,
  ElementAccess,
  GuardedElement,
  ListView,
  NamedRule,
  RuleCondition,
  RuleName,
} from '../../../core/messages/authorization-rule.ts';
import type { ClientFacts } from '../../../core/messages/client-facts.ts';
import type { ConnectionEventEmitter } from '../../../core/messages/connection-events.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { Element } from '../../../core/messages/registry-messages.ts';
import type { RequestAdmission, RequestMail } from '../../../core/messages/request-messages.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import type { SubscriptionsMail } from '../../../core/messages/subscription-messages.ts';
import { ErrorCode, wireError } from '../../../core/protocol/errors.ts';
import { isJsonObject, isThenable, type JsonObject, shortened } from '../../../core/protocol/json.ts';
import { type Operation, ruledArguments } from '../../../core/protocol/operations.ts';
import type { EventType, Prompt, Resource, ResourceTemplate, Tool } from '../../../core/protocol/types.ts';
import { type ShownResource, shownResource } from '../../../core/protocol/views.ts';
import type { Catalogue } from '../../../core/registry/catalogue.ts';
import { resolver } from '../../../core/registry/resolve.ts';
import { hideElement, respond, setGuarded, setOperation, setView } from '../../../core/requests/active-request.ts';
import { codesOf, type EventsCodes, eventsCode } from '../../events/event-wire.ts';
import type { AuditMail } from '../audit/audit-messages.ts';
import { ListViews } from './list-views.ts';
import { guardedElement, NO_ARGUMENTS, RuleContext, ruleCallOf, type Subject } from './rule-call.ts';
import { type DecisionReaders, RuleVerdict } from './rule-verdict.ts';

/** Milliseconds in which the rules of one request must decide. */
const RULE_MS = 1_000;
/** Milliseconds for which a caller's view of a list is remembered. Each call is decided on its own. */
const VIEW_MS = 1_000;

interface AdmissionOptions {
  readonly system: ActorSystem;
  readonly bus: ConnectionEventEmitter;
  readonly catalogues: {
    readonly tools: Catalogue<Tool>;
    readonly resources: Catalogue<Resource | ResourceTemplate>;
    readonly prompts: Catalogue<Prompt>;
    readonly events: Catalogue<EventType>;
  };
  /** The scopes that a task's call needed; undefined if the task does not exist or belongs to another principal. */
  readonly tasks: { neededFor(client: ClientFacts, id: string): readonly string[] | undefined };
  /** The scopes of the call that a model continues by its answers; none for any other request. */
  readonly answers: { neededFor(request: RequestView): readonly string[] };
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  readonly stages: Pick<Stages, 'fill'>;
  /** The results of rules that features add. */
  readonly decisions: DecisionReaders;
  /** A rule about every element was added. */
  guarded(): void;
  /** Records denials; undefined without an audit. */
  readonly audit: Mailbox<AuditMail> | undefined;
  /** Maximum number of resources, and of tasks, of one subscription. */
  readonly maxSubscriptions: number;
  /** The option `events.codes`. */
  readonly eventsCodes: EventsCodes | undefined;
}

type ListKind = 'tools' | 'resources' | 'prompts' | 'events';

type Definition = Tool | Resource | ResourceTemplate | Prompt | EventType;

/** An element of a list about which rules decide. */
interface RuledElement {
  readonly key: string;
  readonly element: GuardedElement;
  readonly allow: AuthorizationRule | undefined;
  readonly hiddenFrom: ElementAccess['hiddenFrom'];
}

/** Every element of a list, in order, if the server has rules; otherwise those with a rule of their own. */
interface RuledElements {
  readonly version: number;
  /** Number of rules of the server. */
  readonly rules: number;
  readonly elements: readonly RuledElement[];
}

const LISTED: Readonly<Record<ListKind, { readonly method: string }>> = {
  tools: { method: 'tools/list' },
  resources: { method: 'resources/list' },
  prompts: { method: 'prompts/list' },
  events: { method: 'events/list' },
};

/** The view that a caller had, as long as the elements and rules are the same. */
interface RememberedView {
  readonly elements: readonly RuledElement[];
  readonly at: number;
  readonly text: string;
}

/** The lists that a session has received. */
interface SeenLists {
  scopes: string;
  readonly views: Map<ListKind, ListView>;
}

const NO_SCOPES: readonly string[] = [];
const NO_RULES: readonly NamedRule[] = [];
/** The name of all elements that do not exist, as in metrics. */
const UNKNOWN = '_unknown';
/** A URI that no resource has: the scheme is this server's. */
const UNKNOWN_URI = 'troupe://';

export class Admission implements RequestAdmission {
  readonly #options: AdmissionOptions;
  readonly #resolve: ReturnType<typeof resolver>;
  #rules: NamedRule[] = [];
  readonly #ruled = new Map<ListKind, RuledElements>();
  readonly #views: Readonly<Record<ListKind, ListViews>> = {
    tools: new ListViews(),
    resources: new ListViews(),
    prompts: new ListViews(),
    events: new ListViews(),
  };
  /** The last view of each list by its caller: requests with the same token have the same object. */
  readonly #remembered: Readonly<Record<ListKind, WeakMap<Auth, RememberedView>>> = {
    tools: new WeakMap(),
    resources: new WeakMap(),
    prompts: new WeakMap(),
    events: new WeakMap(),
  };
  /** The conditions under which requests were admitted. */
  readonly #conditions = new WeakMap<RequestView, readonly RuleCondition[]>();
  /** The last lines of the log, with the time of each. */
  readonly #logged = new Map<string, number>();
  /** By the mailbox of the session. */
  readonly #sessions = new WeakMap<object, SeenLists>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#resolve = resolver(options.catalogues.resources);
  }

  /** Asks the rules about each request from now on: of every element, or of one, there is a rule. */
  begin(): void {
    this.#options.stages.fill('admit', this.admit);
  }

  /** Adds a rule for every element. */
  authorize(rule: NamedRule): void {
    this.#rules.push(rule);
    this.#options.guarded();
  }

  /** The conditions under which a request was admitted; undefined if there are none, or it was not admitted here. */
  conditionsOf(request: RequestView): readonly RuleCondition[] | undefined {
    return this.#conditions.get(request);
  }

  /**
   * Decides again about a call that was admitted earlier, such as before its process ended. Never rejects.
   *
   * @returns undefined if there is no rule about the tool
   */
  judgeCall(
    request: RequestView,
    tool: string,
    args: JsonObject,
  ): RuleVerdict | undefined | Promise<RuleVerdict | undefined> {
    return this.#judge(request, 'tool', tool, this.#options.catalogues.tools.get(tool), args);
  }

  /**
   * Decides about a subscription to an event type, also again while it lasts. Never rejects.
   *
   * @returns undefined if there is no rule about the type
   */
  judgeEvent(
    request: RequestView,
    name: string,
    args: JsonObject,
  ): RuleVerdict | undefined | Promise<RuleVerdict | undefined> {
    return this.#judge(request, 'event', name, this.#options.catalogues.events.get(name), args);
  }

  /** The rules for every element. A later rule is added to the same list. */
  get rules(): NamedRule[] {
    return this.#rules;
  }

  /** Decides by the rules of another server from now on, including those that it gets later. */
  share(rules: NamedRule[]): void {
    this.#rules = rules;
    this.#options.guarded();
    this.#ruled.clear();
  }

  /** Admits a request whose parameters have changed since it was admitted. */
  admitChanged(mail: RequestMail, admitted: (mail: RequestMail) => void): void {
    hideElement(mail.request, false);
    this.admit(mail, admitted);
  }

  /** Sets the view of the list of tools for the caller of a request, before it is admitted. Never rejects. */
  seeTools(request: RequestView): Promise<undefined> | undefined {
    return this.#see(request, 'tools');
  }

  /** Passes an admitted request on, at once unless a rule is asynchronous; responds to all others. */
  readonly admit: RequestGate = (mail, admitted) => {
    const { request } = mail;
    const deciding = this.#decide(request);
    if (deciding === undefined) return admitted(mail);
    if (deciding instanceof RuleVerdict) {
      if (this.#passes(request, deciding)) admitted(mail);
      return;
    }
    const { exchange } = request;
    if (exchange) exchange.undecided = true;
    deciding.then(
      (verdict) => {
        if (exchange) exchange.undecided = false;
        // Its client has left, or it timed out: the outcome only marks the end of its run.
        if (request.settled) return respond(request, { ok: false, error: wireError(ErrorCode.TimedOut, 'it ended') });
        if (verdict && !this.#passes(request, verdict)) return;
        if (exchange) this.#options.bus.emit('connection.admitted', { exchange });
        admitted(mail);
      },
      (error: unknown) => {
        if (exchange) exchange.undecided = false;
        const verdict = new RuleVerdict(NO_SCOPES, this.#options.decisions);
        verdict.fail(this.#options.system.incident('authorizing a request', error));
        this.#passes(request, verdict);
      },
    );
  };

  /** Applies a verdict. @returns false if the request was answered */
  #passes(request: RequestView, verdict: RuleVerdict): boolean {
    if (verdict.hidden) {
      this.#denied(request, 'hidden', verdict);
      hideElement(request, true);
      return true;
    }
    if (verdict.allows) {
      setGuarded(request, verdict.needed);
      // A request whose parameters have changed is admitted again.
      if (verdict.conditions.length > 0) this.#conditions.set(request, verdict.conditions);
      else this.#conditions.delete(request);
      return true;
    }
    this.#reject(request, verdict);
    return false;
  }

  #reject(request: RequestView, verdict: RuleVerdict): void {
    const { denied, incident, reason, needed, missing } = verdict;
    const failed = denied && incident !== undefined;
    this.#denied(request, failed ? 'failed rule' : denied ? 'rule' : 'scope', verdict);
    const { operation, exchange, batch, client } = request;
    const code = operation.method.startsWith('events/')
      ? eventsCode('forbidden', codesOf(client.capabilities, this.#options.eventsCodes))
      : ErrorCode.Forbidden;
    if (reason !== undefined) this.#log(`rejected ${operation.method} of ${client.principal}: ${reason}`, request);
    if (denied) {
      const why = incident === undefined ? '' : ` (incident ${incident}; the server's log has the details)`;
      return respond(request, {
        ok: false,
        error: wireError(code, `${operation.method}: this request is not allowed${why}`),
      });
    }
    // All of them, granted ones included: many clients request a token with these scopes and no others.
    const scope = needed.join(' ');
    const { resourceMetadata } = exchange ?? {};
    if (exchange && !batch) exchange.neededScopes = needed;
    respond(request, {
      ok: false,
      error: wireError(
        code,
        `${operation.method}: the credentials lack ${missing.length === 1 ? 'the scope' : 'the scopes'} ${missing.join(' ')}`,
        { scope, ...(resourceMetadata === undefined ? {} : { resourceMetadata }) },
      ),
    });
  }

  #denied(request: RequestView, why: Denial, { reason, incident, needed }: RuleVerdict): void {
    const { system, audit } = this.#options;
    system.metrics.denied(why);
    audit?.send({
      type: 'denied',
      by: request.client,
      element: this.#nameOf(request.operation),
      request,
      rule: reason ?? why,
      scopesHad: request.auth?.scopes,
      scopesNeeded: needed,
      incident,
    });
  }

  /**
   * The element of a request, as the audit log names it: by its name or template here, never by the text of the client,
   * which may be long and contain secrets.
   */
  #nameOf(operation: Operation): string {
    const { tools, prompts, events } = this.#options.catalogues;
    switch (operation.method) {
      case 'tools/call':
        return `tool ${tools.get(operation.name)?.key ?? UNKNOWN}`;
      case 'prompts/get':
        return `prompt ${prompts.get(operation.name)?.key ?? UNKNOWN}`;
      case 'events/poll':
      case 'events/stream':
      case 'events/subscribe':
        return `event ${events.get(operation.name)?.key ?? UNKNOWN}`;
      case 'resources/read':
      case 'skills/get':
      case 'resources/subscribe':
        return `resource ${this.#resolve(operation.uri)?.element.key ?? UNKNOWN}`;
      default:
        return operation.method;
    }
  }

  /** Logs for the operator why a rule has denied a request: the same line once in {@link SAME_LINE_MS}. */
  #log(text: string, request: RequestView): void {
    const { clock, log } = this.#options.system;
    const line = shortened(text, MAX_REASON);
    const now = clock.now();
    const before = this.#logged.get(line);
    if (before !== undefined && now - before < SAME_LINE_MS) return;
    if (this.#logged.size >= MAX_LINES) this.#logged.clear();
    this.#logged.set(line, now);
    log('info', line, { event: 'denied', ...fieldsOf(request) });
  }

  #decide(request: RequestView): RuleVerdict | undefined | Promise<RuleVerdict | undefined> {
    const { operation, client } = request;
    const { session } = client;
    if (session) this.#notice(request, session.mailbox);
    const { catalogues, tasks } = this.#options;
    switch (operation.method) {
      case 'tools/call': {
        const element = catalogues.tools.get(operation.name);
        const judged = this.#judge(request, 'tool', operation.name, element, argumentsOf(operation));
        const shown = shownResource(operation.name, operation.arguments);
        if (shown) return this.#judgeShown(request, operation, shown, judged);
        const needed = this.#options.answers.neededFor(request);
        return needed.length === 0 ? judged : demanding(request, judged, needed);
      }
      case 'prompts/get': {
        const element = catalogues.prompts.get(operation.name);
        return this.#judge(request, 'prompt', operation.name, element, argumentsOf(operation));
      }
      case 'resources/read':
      case 'skills/get':
      case 'resources/subscribe':
        return this.#judgeUri(request, operation.uri);
      case 'completion/complete': {
        const { ref } = operation;
        const args = argumentsOf(operation);
        if (ref.type === 'ref/prompt')
          return this.#judge(request, 'prompt', ref.name, catalogues.prompts.get(ref.name), args);
        const element = catalogues.resources.get(ref.uri);
        if (!element) return this.#judgeUri(request, ref.uri);
        return this.#judge(request, kindOf(element), element.key, element, args, ref.uri);
      }
      case 'subscriptions/listen':
        return this.#judgeListen(request, operation);
      case 'events/list':
        return this.#see(request, 'events');
      case 'events/poll':
      case 'events/stream':
        return this.judgeEvent(request, operation.name, operation.arguments);
      case 'tasks/get':
      case 'tasks/result':
      case 'tasks/cancel':
      case 'tasks/update':
        return needing(request, tasks.neededFor(client, operation.taskId) ?? NO_SCOPES);
      case 'tools/list':
        return this.#see(request, 'tools');
      case 'prompts/list':
        return this.#see(request, 'prompts');
      case 'resources/list':
      case 'resources/templates/list':
      case 'skills/list':
      case 'resources/directory/read':
        return this.#see(request, 'resources');
      default:
        return undefined;
    }
  }

  /** A page shows what its tool takes and returns: a caller that may not use the tool may not read the page. */
  #judgeOpener(request: RequestView, tool: string): RuleVerdict | undefined | Promise<RuleVerdict> {
    return this.#judge(request, 'tool', tool, this.#options.catalogues.tools.get(tool), NO_ARGUMENTS);
  }

  /** A call of a view needs all that a read of its resource needs. A hidden resource counts as an unknown one. */
  #judgeShown(
    request: RequestView,
    operation: Extract<Operation, { method: 'tools/call' }>,
    { member, uri }: ShownResource,
    judged: RuleVerdict | undefined | Promise<RuleVerdict>,
  ): RuleVerdict | undefined | Promise<RuleVerdict | undefined> {
    const args = argumentsOf(operation);
    const found = this.#judgeUri(request, uri);
    const both = (call: RuleVerdict | undefined, read: RuleVerdict | undefined): RuleVerdict | undefined => {
      if (!read) return call;
      if (read.hidden) {
        setOperation(request, { ...operation, arguments: { ...args, [member]: UNKNOWN_URI } });
        return call;
      }
      if (!call) return read;
      call.include(read);
      return call;
    };
    return isThenable(judged) || isThenable(found)
      ? Promise.all([judged, found]).then(([call, read]) => both(call, read))
      : both(judged, found);
  }

  #judgeUri(request: RequestView, uri: string): RuleVerdict | undefined | Promise<RuleVerdict> {
    const { element, variables = NO_ARGUMENTS } = this.#resolve(uri) ?? {};
    if (element?.opener !== undefined) return this.#judgeOpener(request, element.opener);
    return this.#judge(
      request,
      element ? kindOf(element) : 'resource',
      element?.key ?? uri,
      element,
      variables,
      canonicalUri(uri),
    );
  }

  #judge(
    request: RequestView,
    kind: Subject['kind'],
    name: string,
    element: Subject['element'],
    args: JsonObject,
    uri?: string,
  ): RuleVerdict | undefined | Promise<RuleVerdict> {
    const access = element?.access;
    if (this.#rules.length === 0 && !access) return undefined;
    const verdict = new RuleVerdict(request.auth?.scopes ?? NO_SCOPES, this.#options.decisions);
    if (access?.hiddenFrom?.(request)) {
      verdict.hidden = true;
      return verdict;
    }
    verdict.demandOf(access, args);
    const waiting = this.#ask(request, { kind, name, element, arguments: args, uri }, access, verdict);
    if (!waiting) return this.#heldTools(kind, verdict);
    return this.#inTime(waiting).then((inTime) => {
      if (!inTime) verdict.deny('its rules took too long');
      return this.#heldTools(kind, verdict);
    });
  }

  /** Only the handler of a tool waits for a condition. Another element with one is rejected. */
  #heldTools(kind: Subject['kind'], verdict: RuleVerdict): RuleVerdict {
    if (kind === 'tool' || verdict.conditions.length === 0) return verdict;
    const { incident } = this.#options.system;
    const names = [...this.#options.decisions.keys()].join(', ');
    verdict.fail(
      incident('an authorization rule', new TypeError(`{ ${names} } is a decision about tools only, got a ${kind}`)),
    );
    return verdict;
  }

  /**
   * A subscription needs all that its resources and tasks need. A hidden resource is left out, as an unknown one is.
   */
  #judgeListen(
    request: RequestView,
    operation: Extract<Operation, { method: 'subscriptions/listen' }>,
  ): RuleVerdict | undefined | Promise<RuleVerdict> {
    const { filter } = operation;
    const verdict = new RuleVerdict(request.auth?.scopes ?? NO_SCOPES);
    for (const id of (filter.tasks ?? []).slice(0, this.#options.maxSubscriptions))
      verdict.demand(this.#options.tasks.neededFor(request.client, id) ?? NO_SCOPES);
    const hidden = new Set<string>();
    const waiting: Promise<void>[] = [];
    const include = (uri: string, found: RuleVerdict): void => {
      if (found.hidden) hidden.add(uri);
      else verdict.include(found);
    };
    const asked = new Set(filter.resources);
    // The subscriptions actor rejects a longer filter.
    if (asked.size > this.#options.maxSubscriptions) return verdict;
    for (const uri of asked) {
      const found = this.#judgeUri(request, uri);
      if (found instanceof RuleVerdict) include(uri, found);
      else if (found) waiting.push(found.then((late) => include(uri, late)));
    }
    const decided = (): RuleVerdict => {
      if (hidden.size > 0)
        setOperation(request, {
          ...operation,
          filter: { ...filter, resources: filter.resources?.filter((uri) => !hidden.has(uri)) },
        });
      return verdict;
    };
    return waiting.length === 0 ? decided() : Promise.all(waiting).then(decided);
  }

  /** Asks each rule. @returns the decisions that are still to come */
  #ask(
    request: RequestView,
    subject: Subject,
    access: ElementAccess | undefined,
    verdict: RuleVerdict,
  ): Promise<void>[] | undefined {
    const allow = access?.allow;
    const own = access?.rules ?? NO_RULES;
    if (this.#rules.length === 0 && own.length === 0 && !allow) return undefined;
    const call = ruleCallOf(request, subject);
    const ctx = new RuleContext(request);
    let waiting: Promise<void>[] | undefined;
    const ask = (rule: AuthorizationRule, name: RuleName, option: 'allow' | 'server.authorize'): void => {
      try {
        const decision: AuthorizationDecision | Promise<AuthorizationDecision> = rule(call, ctx);
        if (!isThenable(decision)) return verdict.add(decision, name);
        waiting ??= [];
        waiting.push(
          Promise.resolve(decision)
            .then((late) => verdict.add(late, name))
            .catch((error: unknown) => this.#failed(verdict, error, ruleAbout(subject, option))),
        );
      } catch (error) {
        this.#failed(verdict, error, ruleAbout(subject, option));
      }
    };
    for (const named of this.#rules) ask(named.rule, named, 'server.authorize');
    for (const named of own) ask(named.rule, named, 'allow');
    if (allow) ask(allow, { name: allow.name }, 'allow');
    return waiting;
  }

  /** A rule failed: the request is rejected. */
  #failed(verdict: RuleVerdict, error: unknown, where: string): void {
    verdict.fail(verdict.incident ?? this.#options.system.incident(where, error));
  }

  /** Waits for decisions. @returns false if they took longer than {@link RULE_MS} */
  #inTime(waiting: readonly Promise<void>[]): Promise<boolean> {
    const { clock, incident } = this.#options.system;
    let timer: Timer | undefined;
    const late = new Promise<false>((resolve) => {
      timer = clock.after(RULE_MS, () => {
        incident('an authorization rule', new Error(`it took longer than ${durationOf(RULE_MS)}`));
        resolve(false);
      });
    });
    const decided = Promise.all(waiting).then((): true => true);
    return Promise.race([decided, late]).finally(() => timer?.cancel());
  }

  /** Sets the view of a list for its caller. */
  #see(request: RequestView, list: ListKind): undefined | Promise<undefined> {
    const seeing = this.#viewFor(request, list);
    if (seeing === undefined) return undefined;
    if (!isThenable(seeing)) {
      this.#show(request, list, seeing);
      return undefined;
    }
    return seeing.then((view) => {
      this.#show(request, list, view);
      return undefined;
    });
  }

  #show(request: RequestView, list: ListKind, view: ListView): void {
    setView(request, view);
    const session = request.client.session?.mailbox;
    if (session) this.#seenBy(request, session).views.set(list, view);
  }

  /** The view of a list for the caller of a request; undefined if no rule can hide anything. */
  #viewFor(request: RequestView, list: ListKind): ListView | undefined | Promise<ListView> {
    const elements = this.#ruledOf(list);
    const views = this.#views[list];
    if (elements.length === 0) return this.#rules.length === 0 ? undefined : views.of([]);
    const ctx = new RuleContext(request);
    const { auth } = request;
    const { principal } = request.client;
    const now = this.#options.system.clock.now();
    const remembered = auth && this.#remembered[list].get(auth);
    if (remembered?.elements === elements && now - remembered.at < VIEW_MS) {
      const view = views.again(remembered.text);
      if (view) return view;
    }
    const remember = (view: ListView): ListView => {
      if (auth && remembers && !ctx.readsRequest && failures === 0)
        this.#remembered[list].set(auth, { elements, at: now, text: view.text });
      return view;
    };
    const { method } = LISTED[list];
    const hidden: string[] = [];
    let waiting: Promise<void>[] | undefined;
    let failures = 0;
    let remembers = true;
    // One incident for the list: a rule that fails, fails for each of its elements.
    const failed = (error: unknown): void => {
      if (failures === 0) this.#options.system.incident(`an authorization rule (${method})`, error);
      failures += 1;
    };
    for (const { key, element, allow, hiddenFrom } of elements) {
      if (hiddenFrom) {
        // Another request with the same token may be one of another owner.
        remembers = false;
        if (hiddenFrom(request)) {
          hidden.push(key);
          continue;
        }
      }
      const call = { method, element, arguments: NO_ARGUMENTS, uri: undefined, auth, principal };
      let hides = false;
      for (let place = allow ? -1 : 0; place < this.#rules.length; place += 1) {
        const rule = place === -1 ? allow : this.#rules[place]?.rule;
        try {
          const decision = rule?.(call, ctx);
          if (decision === true) continue;
          if (isThenable(decision)) {
            waiting ??= [];
            waiting.push(
              Promise.resolve(decision).then(
                (late) => {
                  if (hidesIt(late)) hidden.push(key);
                },
                (error: unknown) => {
                  failed(error);
                  hidden.push(key);
                },
              ),
            );
          } else hides ||= hidesIt(decision);
        } catch (error) {
          failed(error);
          hides = true;
        }
      }
      if (hides) hidden.push(key);
    }
    if (!waiting) return remember(views.of(hidden));
    return this.#inTime(waiting).then((inTime) => {
      // Rules that have not decided in time show nothing of the list.
      if (!inTime) return views.of(elements.map(({ key }) => key));
      return remember(views.of(inOrder(elements, hidden)));
    });
  }

  #ruledOf(list: ListKind): readonly RuledElement[] {
    const catalogue = this.#options.catalogues[list];
    const { version } = catalogue;
    const found = this.#ruled.get(list);
    if (found?.version === version && found.rules === this.#rules.length) return found.elements;
    const everything: readonly Element<Definition>[] = catalogue.all();
    const elements = everything.flatMap((element): RuledElement[] => {
      // A page is listed as its tool is.
      const tool = element.opener === undefined ? undefined : this.#options.catalogues.tools.get(element.opener);
      const ruled: Element<Definition> = tool ?? element;
      const { allow, hiddenFrom } = ruled.access ?? {};
      if (!element.enabled || (this.#rules.length === 0 && !allow && !hiddenFrom)) return [];
      return [{ key: element.key, element: guardedElement(kindOf(ruled), ruled.key, ruled), allow, hiddenFrom }];
    });
    this.#ruled.set(list, { version, rules: this.#rules.length, elements });
    return elements;
  }

  /** Compares the scopes of a session's request with those of the request before: its lists may have changed. */
  #notice(request: RequestView, session: object): void {
    const seen = this.#sessions.get(session);
    if (!seen || seen.views.size === 0) return;
    const scopes = scopesOf(request);
    if (scopes === seen.scopes) return;
    seen.scopes = scopes;
    for (const [list, before] of seen.views) {
      const compare = (now: ListView | undefined): void => {
        if (!now || now === before) return;
        seen.views.set(list, now);
        const mailbox = request.client.session?.mailbox;
        if (mailbox && [...before.hides].some((key) => !now.hides.has(key)))
          this.#options.subscriptions.send({
            type: 'session changed',
            session: mailbox,
            change: { type: 'list changed', what: list },
          });
      };
      const now = this.#viewFor(request, list);
      if (isThenable(now)) now.then(compare, () => {});
      else compare(now);
    }
  }

  #seenBy(request: RequestView, session: object): SeenLists {
    const seen = this.#sessions.get(session);
    if (seen) return seen;
    const created: SeenLists = { scopes: scopesOf(request), views: new Map() };
    this.#sessions.set(session, created);
    return created;
  }
}

/** Maximum number of characters of a line of the log with a rule's reason, and of such lines that are remembered. */
const MAX_REASON = 500;
const MAX_LINES = 1_000;
const SAME_LINE_MS = 10_000;

/** Names a rule for the operator, by the option that has it and by the element. */
function ruleAbout({ kind, name, element }: Subject, option: string): string {
  return `an authorization rule (${option}, ${kind} "${element ? name : UNKNOWN}")`;
}

function argumentsOf(operation: Operation): JsonObject {
  const args = ruledArguments(operation);
  return isJsonObject(args) ? args : NO_ARGUMENTS;
}

function hidesIt(decision: AuthorizationDecision | undefined): boolean {
  return typeof decision === 'object' && 'hidden' in decision && decision.hidden === true;
}

/** Rules that decide later do so in any order. */
function inOrder(elements: readonly RuledElement[], hidden: readonly string[]): readonly string[] {
  const all = new Set(hidden);
  return elements.flatMap(({ key }) => (all.has(key) ? [key] : []));
}

function scopesOf({ auth }: RequestView): string {
  return auth ? auth.scopes.join(' ') : '';
}

function kindOf({ definition }: Element<Definition>): Subject['kind'] {
  if ('uriTemplate' in definition) return 'template';
  if ('uri' in definition) return 'resource';
  if ('payloadSchema' in definition) return 'event';
  return 'inputSchema' in definition ? 'tool' : 'prompt';
}

function needing(request: RequestView, scopes: readonly string[]): RuleVerdict | undefined {
  if (scopes.length === 0) return undefined;
  const verdict = new RuleVerdict(request.auth?.scopes ?? NO_SCOPES);
  verdict.demand(scopes);
  return verdict;
}

/** Adds scopes to what was decided about a request. */
function demanding(
  request: RequestView,
  judged: RuleVerdict | undefined | Promise<RuleVerdict>,
  scopes: readonly string[],
): RuleVerdict | undefined | Promise<RuleVerdict> {
  if (judged === undefined) return needing(request, scopes);
  if (!(judged instanceof RuleVerdict))
    return judged.then((late) => {
      late.demand(scopes);
      return late;
    });
  judged.demand(scopes);
  return judged;
}

/**
 * The URI in the one spelling that rules see: a template also matches others, in which characters are encoded that need not
 * be (RFC 3986 section 6.2.2).
 */
function canonicalUri(uri: string): string {
  if (!uri.includes('%')) return uri;
  return uri.replace(/%[0-9a-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16));
    return /[\w.~-]/.test(character) ? character : encoded.toUpperCase();
  });
}
