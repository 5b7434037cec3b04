/** Asks people about calls, and about parts of their handlers: finds or creates their approvals, waits, and uses each once. */

import type { Context } from '../../core/execution/context.ts';
import type { ToolCall } from '../../core/execution/execution.ts';
import { CannotAsk, Unanswered } from '../../core/execution/input-errors.ts';
import { becomeTask, isTask, prolong, type RequestContext } from '../../core/execution/request-context.ts';
import { failed } from '../../core/execution/tool-result.ts';
import { afterAny, isoOf, LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { InputRequest, Reply } from '../../core/messages/client-input.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { META } from '../../core/protocol/meta.ts';
import { ANONYMOUS, LOCAL } from '../../core/protocol/principals.ts';
import type { CallToolResult, Tool } from '../../core/protocol/types.ts';
import { viaOf } from '../../core/requests/inner-requests.ts';
import type { Core } from '../../core/server/feature.ts';
import { digest } from '../../core/store/seal.ts';
import { askVerbatim, continuesElsewhere } from '../asking/asking-context.ts';
import { cannotAsk } from '../asking/declared-capabilities.ts';
import type { InteractiveRequests } from '../asking/interactive-requests.ts';
import { ApprovalError } from './approval-error.ts';
import type { Approver } from './approval-interface.ts';
import { type ApprovalTerms, personOf, usesOf } from './approval-policy.ts';
import { isPreview, previewCall } from './approval-preview.ts';
import { isOpen, metaOfApproval, type Rememberable, type StoredApproval, unmetOf } from './approval-record.ts';
import type { ApprovalTable } from './approval-table.ts';
import {
  formOf,
  MAX_FORM,
  MAX_TEXT,
  notCarriedOut,
  pageText,
  pendingText,
  refusedText,
  type ShownData,
  textOfCall,
  waitText,
} from './approval-text.ts';
import type { LastKey } from './last-approvals.ts';

export interface ApprovalAskingOptions {
  readonly core: Core;
  readonly table: ApprovalTable;
  readonly interactive: InteractiveRequests;
  /** The address of the page of an approval, for people who sign in; undefined if this server has none. */
  pageOf(id: string): string | undefined;
  /** Opens the page of an approval for the user of this machine. @returns its address, which is a secret of their client */
  localPageOf(id: string): Promise<string>;
}

/** The terms of a demand now, or the result of a call that must not run. */
export type TermsNow = { readonly terms: ApprovalTerms | undefined } | Refused;

/** The result in the place of a call that does not run. */
export interface Refused {
  readonly result: CallToolResult;
}

/** A call, or a part of its handler, that may need an approval. */
export interface ApprovalDemand {
  readonly call: ToolCall;
  readonly ctx: Context;
  readonly context: RequestContext;
  /** The step of the call that remembers its approval, so that the call finds it again in another process. */
  readonly step: string;
  /** The part of the handler; undefined for the call itself. */
  readonly part?: { readonly title: string; readonly show: JsonObject } | undefined;
  /** @param isNew the demand was not decided before in this process */
  terms(isNew: boolean): Promise<TermsNow>;
}

/** The approval that a call uses, undefined if it needs none. `isFirst`: no earlier run of the call has come this far. */
export interface Decided {
  readonly approval: StoredApproval | undefined;
  readonly isFirst: boolean;
}

/** Approvals that one call asks for, one after the other, because what they were about has changed. */
const MAX_ASKED = 5;
/** Milliseconds for which a grant of a session lasts at most. */
const SESSION_MS = 86_400_000;
/** Milliseconds by which the deadline of a call exceeds that of its approval. */
const MARGIN_MS = 1_000;

/** The ways of a client to ask its user. */
type Channel = { readonly kind: 'form' } | { readonly kind: 'page'; readonly mark: string; url(): Promise<string> };

const FORM: InputRequest = { method: 'elicitation/create', params: {} };
const PAGE: InputRequest = { method: 'elicitation/create', params: { mode: 'url' } };

/** A demand with its terms, and its identity. */
interface Held extends ApprovalDemand {
  readonly policy: ApprovalTerms;
  readonly subject: string;
  readonly pin: Readonly<Record<string, string>>;
  readonly caller: Approver;
}

export class ApprovalAsking {
  readonly #options: ApprovalAskingOptions;

  constructor(options: ApprovalAskingOptions) {
    this.#options = options;
  }

  /** Waits until a call may go on, and uses its approval. @returns the result in its place, if it must not */
  async hold(demand: ApprovalDemand): Promise<Decided | Refused> {
    const { table, core } = this.#options;
    const { call, context } = demand;
    const { first } = context;
    let terms = await demand.terms(true);
    for (let asked = 1; asked <= MAX_ASKED; asked += 1) {
      const known = earlier(demand, asked);
      if ('result' in terms) return terms;
      if (!terms.terms && known === undefined) return { approval: undefined, isFirst: false };
      if (known !== undefined) {
        const found = await table.look(known);
        // The store of another process: its approval is not ours.
        if (!found) continue;
        if (isUsed(found)) {
          if (continues(demand, found)) return { approval: found, isFirst: false };
          const lost = await table.end(found.id, 'lose');
          return { result: this.#refusal(lost ?? { ...found, state: 'unknown' }) };
        }
      }
      if (!terms.terms) {
        if (known !== undefined) await table.end(known, 'withdraw', 'no rule demands it any more');
        return { approval: undefined, isFirst: true };
      }
      if (isPreview(first)) return { result: failed('a preview cannot need an approval') };
      const held = this.#heldOf(demand, terms.terms);
      const approval = await this.#approvalOf(held, known, asked);
      if ('result' in approval) return approval;
      if (approval.state === 'void') continue;
      if (approval.state !== 'approved') return { result: this.#refusal(approval) };
      // The rules decide again, about the caller and the state of now.
      terms = await demand.terms(false);
      if ('result' in terms) {
        await table.end(approval.id, 'annul', 'a rule rejects the call now');
        return terms;
      }
      const changed = this.#changeOf(call, approval, terms.terms);
      if (changed === 'definition') {
        await table.end(approval.id, 'annul', 'the definition of the tool has changed');
        return { result: this.#refusal({ ...approval, state: 'void' }) };
      }
      if (changed === 'policy') {
        await table.end(approval.id, 'annul', 'the policy has changed');
        continue;
      }
      const used = await this.#use(approval, first);
      if (used.state === 'used') {
        table.last.record(this.#lastKey(held), used, this.#shown(held));
        return { approval: used, isFirst: true };
      }
      if (used.state === 'void') continue;
      // Another call with the same arguments was faster.
      if (!approval.held && used.state !== 'expired') continue;
      return { result: this.#refusal(used) };
    }
    core.system.log(
      'warning',
      `tool "${call.tool.name}": its policy or its definition changes with each attempt to approve a call`,
      { event: 'program' },
    );
    return this.#refused(demand, 'what it needs changes all the time');
  }

  #heldOf(demand: ApprovalDemand, policy: ApprovalTerms): Held {
    const { call, context, part } = demand;
    const { first } = context;
    const { principal, session } = first.client;
    const pin = pinOfTool(call.tool, call.implementation.behind);
    const via = viaOf(first);
    const subject = digest({
      server: this.#options.core.info.name,
      tool: call.tool.name,
      principal,
      // Only the session distinguishes callers who have not signed in.
      session: principal === ANONYMOUS && session ? sha256(session.id) : null,
      arguments: isJsonObject(call.arguments) ? call.arguments : {},
      pin: digest(pin),
      policy: policy.digest,
      ...(part ? { part: { title: part.title, show: part.show } } : {}),
      // People approve each call of a script alone. No call outside of the run takes its approval.
      ...(via ? { run: via.run, call: via.call } : {}),
    });
    return { ...demand, policy, subject, pin, caller: approverOf(first) };
  }

  /** The approval of a call, once people have decided; the result in its place if the call must not wait. */
  async #approvalOf(held: Held, known: string | undefined, asked: number): Promise<StoredApproval | Refused> {
    const { table } = this.#options;
    if (known !== undefined) {
      const found = await table.look(known);
      if (!found) return this.#refused(held, 'its approval is gone');
      if (found.subject !== held.subject) {
        await table.end(found.id, 'annul', 'the call, its tool or its policy have changed');
        return { ...found, state: 'void' };
      }
      return isOpen(found.state) ? this.#wait(held, found) : found;
    }
    const earlier = await table.find(held.subject, held.context.first.client.principal);
    const ready = earlier.find(({ held: isHeld, state }) => !isHeld && state === 'approved');
    if (ready) return this.#bound(held, ready, asked);
    const denied = earlier.find((each) => this.#isDenied(each));
    if (denied) return { result: this.#refusal(denied) };
    const granted = await this.#granted(held, asked);
    if (granted) return granted;
    if (this.#lacksApprover(held) && !this.#channelOf(held)) return this.#unaskable(held);
    const open = earlier.find(({ held: isHeld, state }) => !isHeld && isOpen(state));
    const waits = this.#channelOf(held) !== undefined || this.#mayWait(held);
    if (open) return waits ? this.#wait(held, await this.#bound(held, open, asked)) : this.#pending(open);
    const id = waits ? await held.ctx.step(stepName(held.step, asked), () => randomId(22)) : randomId(22);
    const created = await this.#create(held, id, waits);
    return 'result' in created ? created : this.#wait(held, created);
  }

  /** Remembers the approval that a call has found, so that the call finds it again. */
  async #bound(held: Held, approval: StoredApproval, asked: number): Promise<StoredApproval> {
    await held.ctx.step(stepName(held.step, asked), () => approval.id);
    return approval;
  }

  #isDenied({ state, ended }: StoredApproval): boolean {
    const { table, core } = this.#options;
    return state === 'denied' && ended !== undefined && table.date() < ended.at + core.limits.approvalDeniedMs;
  }

  async #create(held: Held, id: string, isHeld: boolean): Promise<StoredApproval | Refused> {
    const { table, core } = this.#options;
    const { call, context, part, policy: terms, subject, pin, caller } = held;
    const { first } = context;
    const { session, principal } = first.client;
    const created = table.date();
    const byCaller = terms.requirements.every(({ by }) => by === 'caller');
    const until = created + (terms.expiresMs ?? (byCaller ? core.limits.askMs : core.limits.approvalMs));
    const preview = terms.preview && (await previewCall(core, terms.preview.tool, first, call.arguments));
    if (preview && 'failed' in preview && terms.preview?.required)
      return this.#refused(held, `it needs an approval with a preview, and there is no preview: ${preview.failed}`);
    const { upstream } = call.implementation;
    const { name, title: given = call.tool.annotations?.title } = call.tool;
    // The title of an upstream is its own words, which may say another thing than what the tool does.
    const title = terms.title ?? (upstream ? name : (given ?? name));
    const shown = this.#shown(held);
    const text = textOfCall({
      ...{ server: core.info.name, upstream, tool: call.tool, title, principal, until, preview },
      messages: terms.messages,
      policies: terms.policies,
      ...shown,
      show: terms.show,
      changed: await this.#changesSince(held),
      last: await table.last.compare(this.#lastKey(held), pin, shown),
    });
    if (text.length > MAX_TEXT)
      return this.#refused(
        held,
        `nobody can review it, because it would show ${text.length} characters of at most ${MAX_TEXT}. Pass less, or in several calls`,
      );
    const remembers = this.#rememberable(held);
    const approval: StoredApproval = {
      ...{ id, state: 'asked', tool: call.tool.name, principal, person: personOf(caller), subject, pin, title, text },
      binding: digest({ subject, call: isHeld ? id : null, shown: sha256(text), until }),
      ...{ policy: terms.digest, policies: terms.policies, requirements: terms.requirements },
      ...{ created, until, held: isHeld, given: [] },
      ...(remembers === undefined ? {} : { remembers }),
      ...(part === undefined ? {} : { part: part.title }),
    };
    const stored = await table.create(approval, session?.id);
    if (typeof stored !== 'string') return stored;
    return this.#refused(held, `it needs an approval, but ${stored}. Wait until people have decided about the others`);
  }

  /** The members of the definition that differ from those that this call was to be approved with before. */
  async #changesSince(held: Held): Promise<readonly string[]> {
    const { call, pin } = held;
    const earlierId = [...Array(MAX_ASKED).keys()]
      .map((place) => earlier(held, place + 1))
      .findLast((id) => id !== undefined);
    const before = earlierId === undefined ? undefined : await this.#options.table.look(earlierId);
    if (!before || before.tool !== call.tool.name) return [];
    return [...new Set([...Object.keys(before.pin), ...Object.keys(pin)])].filter(
      (name) => before.pin[name] !== pin[name],
    );
  }

  /** The data that people see: the arguments as the operator wants people and logs to see them, and those that its handler shows. */
  #shown({ call: { tool, arguments: args }, part }: Held): ShownData {
    const given = isJsonObject(args) ? args : {};
    const redact = this.#options.core.options.audit?.redact;
    return { arguments: redact ? (redact(given, tool.name) ?? {}) : given, details: part?.show };
  }

  /** Names the calls of which the last approved one is compared with the next. */
  #lastKey({ call, context, part }: Held): LastKey | undefined {
    const { principal } = context.first.client;
    // Those who have not signed in are several people.
    if (principal === ANONYMOUS) return undefined;
    return { principal, tool: call.tool.name, part: part?.title };
  }

  /** Waits for the people who must approve: asks the caller in its client, and waits for the others. */
  async #wait(held: Held, approval: StoredApproval): Promise<StoredApproval | Refused> {
    let now = approval;
    let opened = false;
    while (isOpen(now.state)) {
      const channel = needsCaller(now) && !opened ? this.#channelOf(held, now) : undefined;
      if (channel) {
        const asked = await this.#ask(held, now, channel);
        if (asked === 'unable') return this.#released(held, now);
        opened = asked === 'opened';
        now = asked === 'opened' ? await this.#waitForPage(held, now) : asked;
      } else if (this.#mayWait(held)) now = await this.#waitForOthers(held, now);
      else return this.#released(held, now);
    }
    return now;
  }

  /**
   * Finds the way of the client to ask its user: a form, or the page of the approval. A model is never asked.
   *
   * @param approval undefined: it does not exist yet, and its text may still fit into a form
   */
  #channelOf({ context, policy }: Held, approval?: StoredApproval): Channel | undefined {
    const { current } = context;
    const { capabilities, principal, session } = current.client;
    if (!policy.requirements.some(({ by }) => by === 'caller') || current.batch) return undefined;
    if (session === undefined && !('input' in current.operation)) return undefined;
    const fits = approval === undefined || approval.text.length <= MAX_FORM;
    if (fits && !cannotAsk(FORM, capabilities)) return { kind: 'form' };
    // A page must know the person in the browser.
    if (principal === ANONYMOUS || cannotAsk(PAGE, capabilities)) return undefined;
    const { pageOf, localPageOf, table } = this.#options;
    const id = approval?.id ?? '';
    // The port of an earlier process is closed: this one asks again.
    if (principal === LOCAL) return { kind: 'page', mark: `${table.process}-`, url: () => localPageOf(id) };
    const url = pageOf(id);
    return url === undefined ? undefined : { kind: 'page', mark: '', url: () => Promise.resolve(url) };
  }

  /** True if the call outlives its request, so that it can wait for other people. */
  #mayWait({ ctx }: Held): boolean {
    return isTask(ctx) || becomeTask(ctx);
  }

  /**
   * Asks the user of the client.
   *
   * @returns `unable` if the client cannot show the question; `opened` if the user has been sent to the page, which decides
   */
  async #ask(held: Held, approval: StoredApproval, channel: Channel): Promise<StoredApproval | 'unable' | 'opened'> {
    const { table, core } = this.#options;
    const { ctx, context } = held;
    const { id, until } = approval;
    const elsewhere = new AbortController();
    const timer = afterAny(core.system.clock, Math.max(0, until - table.date()), () =>
      elsewhere.abort(new Unanswered('nobody decided in time')),
    );
    const decided = table.wait(id, elsewhere.signal);
    // The server keys the name: no client knows it before it is asked, so that an answer in advance meets no question.
    const mark = core.keys.ring.fingerprint({ approval: id });
    const name = `approval-${channel.kind === 'page' ? `page-${channel.mark}` : ''}${mark}`;
    try {
      const question = await questionOf(approval, channel, mark);
      const asked = askVerbatim(ctx, { [name]: question }, elsewhere.signal);
      asked.catch(() => {});
      const first = await Promise.race([asked, decided]);
      if (isApproval(first)) {
        elsewhere.abort(new Unanswered('it was decided elsewhere'));
        if (channel.kind === 'page') completed(context, mark);
        return first;
      }
      const reply = first[name];
      if (!reply?.ok) return 'unable';
      // A client that accepts without the decision has shown its user no form.
      if (channel.kind === 'form' && isAccepted(reply) && !hasDecision(reply)) return 'unable';
      // The client says that its user wants to open the page. Only the page approves.
      if (channel.kind === 'page' && isAccepted(reply)) return 'opened';
      return await this.#answered(context, approval, channel.kind === 'page' ? undefined : reply.result);
    } catch (error) {
      return await this.#unanswered(ctx, approval, error);
    } finally {
      timer.cancel();
      elsewhere.abort(new Unanswered('it was decided'));
      decided.catch(() => {});
    }
  }

  /** Waits until the caller has decided on the page, for as long as a question waits. */
  async #waitForPage(held: Held, approval: StoredApproval): Promise<StoredApproval> {
    const { table, core } = this.#options;
    const { ctx, context } = held;
    const { id } = approval;
    const left = Math.max(0, approval.until - table.date()) + MARGIN_MS;
    const ms = this.#mayWait(held) ? left : Math.min(left, core.limits.askMs);
    const late = new AbortController();
    const timer = afterAny(core.system.clock, ms, () => late.abort());
    const restore = prolong(ctx, Math.min(ms + MARGIN_MS, LONGEST_TIMER_MS));
    try {
      const now = await table.wait(id, AbortSignal.any([ctx.signal, late.signal]), (each) => !needsCaller(each));
      completed(context, core.keys.ring.fingerprint({ approval: id }));
      return now;
    } catch (error) {
      if (late.signal.aborted && !ctx.signal.aborted) return (await table.look(id)) ?? approval;
      if (isTask(ctx) || error instanceof ApprovalError || continuesElsewhere(ctx))
        return await this.#left(ctx, approval, error);
      // Clients wait less long than people read: the next call takes the approval.
      await table.release(id).catch(() => {});
      throw error;
    } finally {
      timer.cancel();
      restore();
    }
  }

  /** Stores the answer of a user. Everything but a clear approval in a form is a denial. */
  #answered(context: RequestContext, { id }: StoredApproval, result: unknown): Promise<StoredApproval> {
    const { table } = this.#options;
    const { action, content } = isObject(result) ? result : {};
    const { decision, reason, remember } = action === 'accept' && isObject(content) ? content : {};
    const approver = approverOf(context.current);
    const said = typeof reason === 'string' && reason !== '' ? { reason } : {};
    return table
      .answered(id, {
        approver,
        decision: decision === 'approve' ? 'approve' : 'deny',
        via: 'client',
        remember: remember === true,
        ...said,
      })
      .catch(async (error: unknown) => {
        // It was decided elsewhere in the meantime.
        const found = error instanceof ApprovalError && error.fault === 'closed' ? await table.look(id) : undefined;
        if (found) return found;
        throw error;
      });
  }

  /** The user was not asked to the end: the call was cancelled, the time has passed, or the process ends. */
  async #unanswered(ctx: Context, approval: StoredApproval, error: unknown): Promise<StoredApproval | 'unable'> {
    const { table } = this.#options;
    if (error instanceof CannotAsk) return 'unable';
    if (error instanceof ApprovalError) throw error;
    if (table.date() >= approval.until) return (await table.look(approval.id)) ?? approval;
    if (ctx.signal.aborted && !continuesElsewhere(ctx))
      await table.end(approval.id, 'withdraw', 'the call was cancelled, or its client has left').catch(() => {});
    throw error;
  }

  /** Waits for people who decide elsewhere. */
  async #waitForOthers({ ctx }: Held, approval: StoredApproval): Promise<StoredApproval> {
    const { table } = this.#options;
    const left = approval.until - table.date() + MARGIN_MS;
    const restore = prolong(ctx, Math.min(Math.max(MARGIN_MS, left), LONGEST_TIMER_MS));
    try {
      return await table.wait(approval.id, ctx.signal);
    } catch (error) {
      return await this.#left(ctx, approval, error);
    } finally {
      restore();
    }
  }

  /** The wait for people has failed, perhaps because the call ends. @throws the error */
  async #left(ctx: Context, { id }: StoredApproval, error: unknown): Promise<never> {
    if (!(error instanceof ApprovalError) && !continuesElsewhere(ctx))
      await this.#options.table.end(id, 'withdraw', 'the call was cancelled, or its client has left').catch(() => {});
    throw error;
  }

  /** The call ends, and the approval waits: the next call with the same arguments takes it. */
  async #released(held: Held, approval: StoredApproval): Promise<StoredApproval | Refused> {
    const { table } = this.#options;
    if (this.#lacksApprover(held)) {
      await table.end(approval.id, 'withdraw', 'nobody can approve it');
      return this.#unaskable(held);
    }
    const now = await table.release(approval.id);
    return isOpen(now.state) ? this.#pending(now) : now;
  }

  /** True if the caller must approve and has not signed in: it can be asked in its client only. */
  #lacksApprover({ context, policy }: Held): boolean {
    return context.first.client.principal === ANONYMOUS && policy.requirements.some(({ by }) => by === 'caller');
  }

  #unaskable(held: Held): Refused {
    return this.#refused(
      held,
      'it needs the approval of its user, and this client cannot ask them. The user has not signed in, so that they cannot approve it elsewhere. Use a client that supports elicitation, or sign in',
    );
  }

  /** The result of a call that does not run, whose reason people have not decided. */
  #refused({ call, part }: ApprovalDemand, why: string): Refused {
    return { result: failed(`${notCarriedOut({ tool: call.tool.name, part: part?.title })}: ${why}.`) };
  }

  #pending(approval: StoredApproval): Refused {
    const page = this.#options.pageOf(approval.id);
    return { result: this.#resultOf(pendingText(approval, page), approval, { waits: waitText(approval, page) }) };
  }

  #refusal(approval: StoredApproval): CallToolResult {
    return this.#resultOf(refusedText(approval, this.#options.core.limits.approvalDeniedMs), approval);
  }

  #resultOf(text: string, approval: StoredApproval, more: JsonObject = {}): CallToolResult {
    return { ...failed(text), _meta: { [META.approval]: { ...metaOfApproval(approval, isoOf), ...more } } };
  }

  /** The difference between the approved call and the one that would run. */
  #changeOf(
    call: ToolCall,
    approval: StoredApproval,
    terms: ApprovalTerms | undefined,
  ): 'definition' | 'policy' | undefined {
    const { catalogues } = this.#options.core.elements;
    // The call would run the implementation with which it began.
    const now = catalogues.tools.get(call.tool.name)?.definition;
    if (!now || digest(pinOfTool(now, undefined)) !== digest(pinOfTool(call.tool, undefined))) return 'definition';
    return terms && terms.digest !== approval.policy ? 'policy' : undefined;
  }

  /** Uses an approval: from here on the call counts as started. */
  #use({ id }: StoredApproval, first: RequestView): Promise<StoredApproval> {
    const { table, interactive } = this.#options;
    const round = interactive.roundOf(first);
    return table
      .operate(id, (approval, now) => {
        const counted = approval.given.filter(({ expiresAt, meets }) => {
          const rechecks = meets.some((place) => approval.requirements[place]?.recheck);
          return !rechecks || expiresAt === undefined || expiresAt > now;
        });
        if (approval.grant === undefined && unmetOf({ ...approval, given: counted }).length > 0)
          return { event: 'annul', members: { ended: { at: now, reason: 'the sign-in of an approver has ended' } } };
        return { event: 'use', members: { used: { by: table.process, round } } };
      })
      .catch(async (error: unknown) => {
        const found = error instanceof ApprovalError && error.fault === 'closed' ? await table.look(id) : undefined;
        if (found) return found.state === 'used' ? { ...found, state: 'done' as const } : found;
        throw error;
      });
  }

  /** The calls that the person who approves may approve in advance; undefined if none. */
  #rememberable({ call, context, policy: terms, pin, caller }: Held): Rememberable | undefined {
    const { remember } = terms;
    const { session, principal } = context.first.client;
    const via = viaOf(context.first);
    if (!remember || (principal === ANONYMOUS && !session && !via)) return undefined;
    if (remember.for === 'session' && !session) return undefined;
    const values = matched(call.arguments, remember.match ?? []);
    const inSession = remember.for === 'session' || principal === ANONYMOUS;
    const run = remember.runs === true ? undefined : via?.run;
    const same = remember.match ? ` with the same ${remember.match.join(', ')}` : '';
    const time = remember.for === 'session' ? 'in this session' : `for ${Math.ceil(remember.for / 60_000)} min`;
    const during = run === undefined ? time : `in this run of a script, ${time}`;
    return {
      scope: digest({
        server: this.#options.core.info.name,
        tool: call.tool.name,
        principal,
        person: personOf(caller),
        session: inSession && session ? sha256(session.id) : null,
        pin: digest(pin),
        policy: terms.digest,
        values,
        ...(run === undefined ? {} : { run }),
      }),
      text: `calls of ${call.tool.name}${same}, ${during}, at most ${usesOf(remember)}`,
      forMs: remember.for === 'session' ? SESSION_MS : remember.for,
      max: usesOf(remember),
    };
  }

  /** Approves a call by what a person has remembered. */
  async #granted(held: Held, asked: number): Promise<StoredApproval | Refused | undefined> {
    const { table } = this.#options;
    const { context } = held;
    const remembers = this.#rememberable(held);
    if (!remembers) return undefined;
    const grant = await table.grantsOf.use(remembers.scope, context.first.client.principal);
    if (grant === undefined) return undefined;
    const id = await held.ctx.step(stepName(held.step, asked), () => randomId(22));
    const created = await this.#create(held, id, true);
    if ('result' in created) return created;
    return table.operate(id, () => ({ event: 'approve', members: { grant } }));
  }
}

function isApproval(value: object): value is StoredApproval {
  return 'state' in value && 'subject' in value;
}

function stepName(step: string, asked: number): string {
  return asked === 1 ? step : `${step} ${asked}`;
}

/** The approval that an earlier run of the call has asked for. */
function earlier({ context, step }: ApprovalDemand, asked: number): string | undefined {
  return earlierApproval(context, stepName(step, asked));
}

/** The approval in a step that an earlier run of a call has recorded. */
export function earlierApproval(context: RequestContext, name: string): string | undefined {
  const steps = context.earlier;
  const step = steps && Object.hasOwn(steps, name) ? steps[name] : undefined;
  const id = Array.isArray(step) ? step[0] : step;
  return typeof id === 'string' ? id : undefined;
}

function needsCaller(approval: StoredApproval): boolean {
  return unmetOf(approval).some((place) => approval.requirements[place]?.by === 'caller');
}

/** The step after which a handler has gone on with its approval. */
export function givenStep(step: string): string {
  return `${step} given`;
}

/**
 * True if a call that has used its approval may go on with it: it has asked its client since, and returns with the answer; or its
 * handler has recorded a step since, so that it was written to run again.
 */
function continues({ context, step, part }: ApprovalDemand, { used }: StoredApproval): boolean {
  const { recorded } = context.first;
  if (used === undefined || recorded === undefined) return false;
  if (recorded.round > used.round || recorded.checkpoint !== undefined) return true;
  const steps = Object.keys(context.earlier ?? {});
  // The handler begins after the approval of the call itself.
  if (!part) return steps.some((name) => !name.startsWith(step));
  const given = steps.indexOf(givenStep(step));
  return given >= 0 && given < steps.length - 1;
}

/** True if a call has used the approval, and perhaps has ended. */
function isUsed({ state, part }: StoredApproval): boolean {
  return state === 'used' || state === 'unknown' || (part !== undefined && (state === 'done' || state === 'failed'));
}

async function questionOf(
  { title, tool, text, remembers }: StoredApproval,
  channel: Channel,
  mark: string,
): Promise<InputRequest> {
  if (channel.kind === 'form')
    return {
      method: 'elicitation/create',
      params: { message: text, requestedSchema: formOf(remembers?.text) },
    };
  const message = pageText(title, tool);
  const url = await channel.url();
  return { method: 'elicitation/create', params: { mode: 'url', message, url, elicitationId: mark } };
}

function isAccepted(reply: Reply): boolean {
  return reply.ok && isObject(reply.result) && reply.result.action === 'accept';
}

function hasDecision(reply: Reply): boolean {
  const content = reply.ok && isObject(reply.result) ? reply.result.content : undefined;
  return isObject(content) && content.decision !== undefined;
}

/** Tells the client of a session that its user has finished on the page. */
function completed({ first }: RequestContext, elicitationId: string): void {
  first.client.session?.mailbox.send({ type: 'page completed', elicitationId });
}

function approverOf({ auth, client }: RequestView): Approver {
  return auth ?? { principal: client.principal };
}

/** The values of some arguments; null for one that is absent. */
function matched(args: Readonly<Record<string, unknown>>, names: readonly string[]): JsonObject {
  const given = isJsonObject(args) ? args : {};
  return Object.fromEntries(names.map((name) => [name, Object.hasOwn(given, name) ? [given[name] ?? null] : null]));
}

/** The digests of the members of a definition. @param behind what is behind it */
function pinOfTool(tool: Tool, behind: string | undefined): Readonly<Record<string, string>> {
  const members = Object.entries({ ...tool }).filter(([, member]) => member !== undefined);
  const pin = Object.fromEntries(members.map(([name, member]) => [name, digest(member as JsonValue)]));
  return behind === undefined ? pin : { ...pin, behind };
}
