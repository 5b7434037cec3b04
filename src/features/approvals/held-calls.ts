/** Holds calls of tools until they are approved: asks, waits, and lets each approved call start once. */

import type { Context } from '../../core/execution/context.ts';
import type { ToolCall } from '../../core/execution/execution.ts';
import { CannotAsk, Unanswered } from '../../core/execution/input-errors.ts';
import {
  becomeTask,
  isTask,
  prolong,
  type RequestContext,
  requestContextOf,
} from '../../core/execution/request-context.ts';
import type { HandlerGate } from '../../core/execution/stages.ts';
import { failed } from '../../core/execution/tool-result.ts';
import { afterAny, isoOf, LONGEST_TIMER_MS } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { META } from '../../core/protocol/meta.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { CallToolResult, Tool } from '../../core/protocol/types.ts';
import { turnAway } from '../../core/requests/active-request.ts';
import type { Core } from '../../core/server/feature.ts';
import { digest } from '../../core/store/seal.ts';
import { askVerbatim, continuesElsewhere } from '../asking/asking-context.ts';
import type { InteractiveRequests } from '../asking/interactive-requests.ts';
import type { Admission } from '../guard/authorization/admission.ts';
import { RuleVerdict } from '../guard/authorization/rule-verdict.ts';
import { ApprovalError } from './approval-error.ts';
import type { Approver } from './approval-interface.ts';
import { type ApprovalTerms, personOf, termsOf, usesOf } from './approval-policy.ts';
import { isPreview, previewCall } from './approval-preview.ts';
import { isOpen, metaOfApproval, type Rememberable, type StoredApproval, unmetOf } from './approval-record.ts';
import type { ApprovalTable } from './approval-table.ts';
import { formOf, MAX_FORM, MAX_TEXT, pendingText, refusedText, textOfCall } from './approval-text.ts';

export interface HeldCallsOptions {
  readonly core: Core;
  readonly table: ApprovalTable;
  readonly admission: Admission;
  readonly interactive: InteractiveRequests;
  /** Sentences for a model that say where people decide, such as on a page. */
  readonly ways: readonly ((approval: StoredApproval) => string | undefined)[];
}

/** The step of a call that remembers its approval, so that the call finds it again in another process. */
const STEP = 'io.troupe/approval';
/** Approvals that one call asks for, one after the other, because what they were about has changed. */
const MAX_ASKED = 5;
/** Milliseconds for which a grant of a session lasts at most. */
const SESSION_MS = 86_400_000;
/** Milliseconds by which the deadline of a call exceeds that of its approval. */
const MARGIN_MS = 1_000;

/** A call, its terms, and its identity. */
interface Held {
  readonly call: ToolCall;
  readonly ctx: Context;
  readonly context: RequestContext;
  readonly terms: ApprovalTerms;
  readonly subject: string;
  readonly pin: Readonly<Record<string, string>>;
  readonly caller: Approver;
}

export class HeldCalls {
  readonly #options: HeldCallsOptions;

  constructor(options: HeldCallsOptions) {
    this.#options = options;
  }

  /** Runs a call once it is approved, or returns a result for its model that says why it does not run. */
  async run(call: ToolCall, ctx: Context, next: Parameters<HandlerGate>[2]): Promise<CallToolResult> {
    const context = requestContextOf(ctx);
    const { first } = context;
    // The model corrects the call first: no person is asked about one that cannot run.
    const checked = await call.implementation.input.check(call.arguments);
    if (!checked.ok) return next();
    try {
      const decided = await this.#hold(call, ctx, context);
      if ('result' in decided) {
        turnAway(first);
        turnAway(context.current);
        return decided.result;
      }
      return await this.#carryOut(decided, ctx, next);
    } catch (error) {
      if (!(error instanceof ApprovalError)) throw error;
      const incident =
        error.fault === 'store' ? undefined : this.#options.core.system.incident('holding a call', error, first);
      turnAway(first);
      return failed(
        `The call of "${call.tool.name}" was not carried out: ${error.message}. Nobody has approved it now. Call it again later.`,
        incident,
      );
    }
  }

  /** Waits until the call may start. @returns the approval that it uses, if it needs one, or the result in its place */
  async #hold(
    call: ToolCall,
    ctx: Context,
    context: RequestContext,
  ): Promise<{ readonly id: string | undefined; readonly isFirst: boolean } | { readonly result: CallToolResult }> {
    const { table, core } = this.#options;
    const { first } = context;
    let terms = await this.#termsNow(call, context, true);
    for (let asked = 1; asked <= MAX_ASKED; asked += 1) {
      const known = earlier(context, asked);
      if ('result' in terms) return terms;
      if (!terms.terms && known === undefined) return { id: undefined, isFirst: known !== undefined };
      if (known !== undefined) {
        const found = await table.look(known);
        // The store of another process: its approval is not ours.
        if (!found) continue;
        if (found.state === 'used' || found.state === 'unknown') {
          if (this.#continues(first, found)) return { id: found.id, isFirst: false };
          const lost = await table.end(found.id, 'lose');
          return { result: this.#refusal(lost ?? found) };
        }
      }
      if (!terms.terms) {
        if (known !== undefined) await table.end(known, 'withdraw', 'no rule demands it any more');
        return { id: undefined, isFirst: known !== undefined };
      }
      if (isPreview(first)) return { result: failed('a preview cannot need an approval') };
      const held = this.#heldOf(call, ctx, context, terms.terms);
      const approval = await this.#approvalOf(held, known, asked);
      if ('result' in approval) return approval;
      if (approval.state === 'void') continue;
      if (approval.state !== 'approved') return { result: this.#refusal(approval) };
      // The rules decide again, about the caller and the state of now.
      terms = await this.#termsNow(call, context, false);
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
      if (used.state === 'used') return { id: used.id, isFirst: true };
      if (used.state === 'void') continue;
      // Another call with the same arguments was faster.
      if (!approval.held && used.state !== 'expired') continue;
      return { result: this.#refusal(used) };
    }
    core.system.log(
      'warning',
      `tool "${call.tool.name}": its policy or its definition changes with each attempt to approve a call`,
      {
        event: 'program',
      },
    );
    return {
      result: failed(`The call of "${call.tool.name}" was not carried out: what it needs changes all the time.`),
    };
  }

  /** The terms that the rules demand now. @param admitted the request has just been admitted, if it was admitted in this process */
  async #termsNow(
    call: ToolCall,
    context: RequestContext,
    admitted: boolean,
  ): Promise<{ readonly terms: ApprovalTerms | undefined } | { readonly result: CallToolResult }> {
    const { admission } = this.#options;
    const { tool, implementation } = call;
    const own = implementation.approve;
    const given = admitted ? admission.conditionsOf(context.first) : undefined;
    const isNew = admitted && context.first.recorded?.id === undefined;
    if (given || isNew) return { terms: termsOf(given ?? [], own, tool.name) };
    const args = isJsonObject(call.arguments) ? call.arguments : {};
    const verdict = await admission.judgeCall(context.current, tool.name, args);
    if (!(verdict instanceof RuleVerdict)) return { terms: termsOf([], own, tool.name) };
    if (verdict.allows) return { terms: termsOf(verdict.conditions, own, tool.name) };
    return { result: failed(`The call of "${tool.name}" was not carried out: it is not allowed any more.`) };
  }

  #heldOf(call: ToolCall, ctx: Context, context: RequestContext, terms: ApprovalTerms): Held {
    const { first } = context;
    const { principal, session } = first.client;
    const pin = pinOfTool(call.tool, call.implementation.behind);
    const subject = digest({
      server: this.#options.core.info.name,
      tool: call.tool.name,
      principal,
      // Only the session distinguishes callers who have not signed in.
      session: principal === ANONYMOUS && session ? sha256(session.id) : null,
      arguments: isJsonObject(call.arguments) ? call.arguments : {},
      pin: digest(pin),
      policy: terms.digest,
    });
    return { call, ctx, context, terms, subject, pin, caller: approverOf(first) };
  }

  /** The approval of a call, once people have decided; the result in its place if the call must not wait. */
  async #approvalOf(
    held: Held,
    known: string | undefined,
    asked: number,
  ): Promise<StoredApproval | { readonly result: CallToolResult }> {
    const { table } = this.#options;
    if (known !== undefined) {
      const found = await table.look(known);
      if (!found)
        return { result: failed(`The call of "${held.call.tool.name}" was not carried out: its approval is gone.`) };
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
    if (this.#lacksApprover(held) && !this.#mayAsk(held)) return { result: this.#unaskable(held.call) };
    const open = earlier.find(({ held: isHeld, state }) => !isHeld && isOpen(state));
    const waits = this.#mayAsk(held) || this.#mayWait(held);
    if (open) return waits ? this.#wait(held, await this.#bound(held, open, asked)) : this.#pending(open);
    const id = waits ? await held.ctx.step(stepName(asked), () => randomId(22)) : randomId(22);
    const created = await this.#create(held, id, waits);
    return 'result' in created ? created : this.#wait(held, created);
  }

  /** Remembers the approval that a call has found, so that the call finds it again. */
  async #bound(held: Held, approval: StoredApproval, asked: number): Promise<StoredApproval> {
    await held.ctx.step(stepName(asked), () => approval.id);
    return approval;
  }

  #isDenied({ state, ended }: StoredApproval): boolean {
    const { table, core } = this.#options;
    return state === 'denied' && ended !== undefined && table.date() < ended.at + core.limits.approvalDeniedMs;
  }

  async #create(
    held: Held,
    id: string,
    isHeld: boolean,
  ): Promise<StoredApproval | { readonly result: CallToolResult }> {
    const { table, core } = this.#options;
    const { call, context, terms, subject, pin, caller } = held;
    const { first } = context;
    const { session, principal } = first.client;
    const created = table.date();
    const byCaller = terms.requirements.every(({ by }) => by === 'caller');
    const until = created + (terms.expiresMs ?? (byCaller ? core.limits.askMs : core.limits.approvalMs));
    const preview = terms.preview && (await previewCall(core, terms.preview.tool, first, call.arguments));
    if (preview && 'failed' in preview && terms.preview?.required)
      return {
        result: failed(
          `The call of "${call.tool.name}" was not carried out: it needs an approval with a preview, and there is no preview: ${preview.failed}.`,
        ),
      };
    const { upstream } = call.implementation;
    const { name, title: given = call.tool.annotations?.title } = call.tool;
    // The title of an upstream is its own words, which may say another thing than what the tool does.
    const title = terms.title ?? (upstream ? name : (given ?? name));
    const text = textOfCall({
      ...{ server: core.info.name, upstream, tool: call.tool, title, principal, until, preview },
      messages: terms.messages,
      policies: terms.policies,
      arguments: this.#redacted(call),
      show: terms.show,
      changed: await this.#changesSince(held),
    });
    if (text.length > MAX_TEXT)
      return {
        result: failed(
          `The call of "${call.tool.name}" was not carried out: nobody can review it, because it would show ${text.length} characters of at most ${MAX_TEXT}. Pass less, or in several calls.`,
        ),
      };
    const remembers = this.#rememberable(held);
    const approval: StoredApproval = {
      ...{ id, state: 'asked', tool: call.tool.name, principal, person: personOf(caller), subject, pin, title, text },
      binding: digest({ subject, call: isHeld ? id : null, shown: sha256(text), until }),
      ...{ policy: terms.digest, policies: terms.policies, requirements: terms.requirements },
      ...{ created, until, held: isHeld, given: [] },
      ...(remembers === undefined ? {} : { remembers }),
    };
    const stored = await table.create(approval, session?.id);
    if (typeof stored !== 'string') return stored;
    return {
      result: failed(
        `The call of "${call.tool.name}" was not carried out: it needs an approval, but ${stored}. Wait until people have decided about the others.`,
      ),
    };
  }

  /** The members of the definition that differ from those of the last approval of the tool by this caller. */
  async #changesSince({ call, context, pin }: Held): Promise<readonly string[]> {
    const earlierId = [...Array(MAX_ASKED).keys()]
      .map((place) => earlier(context, place + 1))
      .findLast((id) => id !== undefined);
    const before = earlierId === undefined ? undefined : await this.#options.table.look(earlierId);
    if (!before || before.tool !== call.tool.name) return [];
    return [...new Set([...Object.keys(before.pin), ...Object.keys(pin)])].filter(
      (name) => before.pin[name] !== pin[name],
    );
  }

  /** The arguments as the operator wants people and logs to see them. */
  #redacted({ tool, arguments: args }: ToolCall): JsonValue {
    const given = isJsonObject(args) ? args : {};
    const redact = this.#options.core.options.audit?.redact;
    return redact ? (redact(given, tool.name) ?? {}) : given;
  }

  /** Waits for the people who must approve: asks the caller in its client, and waits for the others. */
  async #wait(held: Held, approval: StoredApproval): Promise<StoredApproval | { readonly result: CallToolResult }> {
    let now = approval;
    while (isOpen(now.state)) {
      if (this.#mayAsk(held) && this.#needsCaller(now)) {
        const asked = await this.#ask(held, now);
        if (asked === 'unable') return this.#released(held, now);
        now = asked;
      } else if (this.#mayWait(held)) now = await this.#waitForOthers(held, now);
      else return this.#released(held, now);
    }
    return now;
  }

  #needsCaller(approval: StoredApproval): boolean {
    return unmetOf(approval).some((place) => approval.requirements[place]?.by === 'caller');
  }

  /** True if the client of the call can show its user a form. A model is never asked. */
  #mayAsk({ context, terms }: Held): boolean {
    const { current } = context;
    const { elicitation } = current.client.capabilities;
    if (!terms.requirements.some(({ by }) => by === 'caller') || current.batch) return false;
    if (!isObject(elicitation) || (elicitation.form === undefined && elicitation.url !== undefined)) return false;
    return current.client.session !== undefined || 'input' in current.operation;
  }

  /** True if the call outlives its request, so that it can wait for other people. */
  #mayWait({ ctx }: Held): boolean {
    return isTask(ctx) || becomeTask(ctx);
  }

  /** Asks the user of the client. @returns `unable` if the client cannot show the question */
  async #ask({ ctx, context }: Held, approval: StoredApproval): Promise<StoredApproval | 'unable'> {
    const { table, core } = this.#options;
    if (approval.text.length > MAX_FORM) return 'unable';
    const { id, until, text, remembers } = approval;
    const elsewhere = new AbortController();
    const timer = afterAny(core.system.clock, Math.max(0, until - table.date()), () =>
      elsewhere.abort(new Unanswered('nobody decided in time')),
    );
    const decided = table.wait(id, elsewhere.signal);
    // The server keys the name: no client knows it before it is asked, so that an answer in advance meets no question.
    const name = `approval-${core.keys.ring.fingerprint({ approval: id })}`;
    try {
      const question = {
        method: 'elicitation/create',
        params: { message: text, requestedSchema: formOf(remembers?.text) },
      } as const;
      const asked = askVerbatim(ctx, { [name]: question }, elsewhere.signal);
      asked.catch(() => {});
      const first = await Promise.race([asked, decided]);
      if (isApproval(first)) {
        elsewhere.abort(new Unanswered('it was decided elsewhere'));
        return first;
      }
      const reply = first[name];
      if (!reply?.ok) return 'unable';
      return await this.#answered(context, approval, reply.result);
    } catch (error) {
      return await this.#unanswered(ctx, approval, error);
    } finally {
      timer.cancel();
      elsewhere.abort(new Unanswered('it was decided'));
      decided.catch(() => {});
    }
  }

  /** Stores the answer of a user. Everything but a clear approval is a denial. */
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
      if (error instanceof ApprovalError) throw error;
      if (!continuesElsewhere(ctx))
        await table.end(approval.id, 'withdraw', 'the call was cancelled, or its client has left').catch(() => {});
      throw error;
    } finally {
      restore();
    }
  }

  /** The call ends, and the approval waits: the next call with the same arguments takes it. */
  async #released(held: Held, approval: StoredApproval): Promise<StoredApproval | { readonly result: CallToolResult }> {
    const { table } = this.#options;
    if (this.#lacksApprover(held)) {
      await table.end(approval.id, 'withdraw', 'nobody can approve it');
      return { result: this.#unaskable(held.call) };
    }
    const now = await table.release(approval.id);
    return isOpen(now.state) ? this.#pending(now) : now;
  }

  /** True if the caller must approve and has not signed in: it can be asked in its client only. */
  #lacksApprover({ context, terms }: Held): boolean {
    return context.first.client.principal === ANONYMOUS && terms.requirements.some(({ by }) => by === 'caller');
  }

  #unaskable({ tool }: ToolCall): CallToolResult {
    return failed(
      `The call of "${tool.name}" was not carried out: it needs the approval of its user, and this client cannot ask them. The user has not signed in, so that they cannot approve it elsewhere. Use a client that supports elicitation, or sign in.`,
    );
  }

  #pending(approval: StoredApproval): { readonly result: CallToolResult } {
    const ways = this.#options.ways.flatMap((way) => way(approval) ?? []);
    return { result: this.#resultOf(pendingText(approval, ways), approval) };
  }

  #refusal(approval: StoredApproval): CallToolResult {
    return this.#resultOf(refusedText(approval, this.#options.core.limits.approvalDeniedMs), approval);
  }

  #resultOf(text: string, approval: StoredApproval): CallToolResult {
    return { ...failed(text), _meta: { [META.approval]: metaOfApproval(approval, isoOf) } };
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

  /** True if a call that has used its approval has asked its client since, and returns with the answer. */
  #continues({ recorded }: RequestView, { used }: StoredApproval): boolean {
    return (
      used !== undefined && recorded !== undefined && (recorded.round > used.round || recorded.checkpoint !== undefined)
    );
  }

  /** Runs the call, and stores how it has ended. */
  async #carryOut(
    { id, isFirst }: { readonly id: string | undefined; readonly isFirst: boolean },
    ctx: Context,
    next: Parameters<HandlerGate>[2],
  ): Promise<CallToolResult> {
    const run = isFirst ? 'first' : undefined;
    if (id === undefined) return next(run);
    const { table, core } = this.#options;
    const end = (event: 'succeed' | 'fail'): void => {
      table
        .end(id, event)
        .catch((error: unknown) => core.system.incident('storing the end of an approved call', error));
    };
    try {
      const result = await next(run);
      end(result.isError === true ? 'fail' : 'succeed');
      return result;
    } catch (error) {
      // Another process continues the call.
      if (!continuesElsewhere(ctx)) end('fail');
      throw error;
    }
  }

  /** The calls that the person who approves may approve in advance; undefined if none. */
  #rememberable({ call, context, terms, pin, caller }: Held): Rememberable | undefined {
    const { remember } = terms;
    const { session, principal } = context.first.client;
    if (!remember || (principal === ANONYMOUS && !session)) return undefined;
    if (remember.for === 'session' && !session) return undefined;
    const values = matched(call.arguments, remember.match ?? []);
    const inSession = remember.for === 'session' || principal === ANONYMOUS;
    const same = remember.match ? ` with the same ${remember.match.join(', ')}` : '';
    const during = remember.for === 'session' ? 'in this session' : `for ${Math.ceil(remember.for / 60_000)} min`;
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
      }),
      text: `calls of ${call.tool.name}${same}, ${during}, at most ${usesOf(remember)}`,
      forMs: remember.for === 'session' ? SESSION_MS : remember.for,
      max: usesOf(remember),
    };
  }

  /** Approves a call by what a person has remembered. */
  async #granted(held: Held, asked: number): Promise<StoredApproval | { readonly result: CallToolResult } | undefined> {
    const { table } = this.#options;
    const { context } = held;
    const remembers = this.#rememberable(held);
    if (!remembers) return undefined;
    const grant = await table.grantsOf.use(remembers.scope, context.first.client.principal);
    if (grant === undefined) return undefined;
    const id = await held.ctx.step(stepName(asked), () => randomId(22));
    const created = await this.#create(held, id, true);
    if ('result' in created) return created;
    return table.operate(id, () => ({ event: 'approve', members: { grant } }));
  }
}

function isApproval(value: object): value is StoredApproval {
  return 'state' in value && 'subject' in value;
}

function stepName(asked: number): string {
  return asked === 1 ? STEP : `${STEP} ${asked}`;
}

/** The approval that an earlier run of the call has asked for. */
function earlier(context: RequestContext, asked: number): string | undefined {
  const steps = context.earlier;
  const name = stepName(asked);
  const step = steps && Object.hasOwn(steps, name) ? steps[name] : undefined;
  const id = Array.isArray(step) ? step[0] : step;
  return typeof id === 'string' ? id : undefined;
}

/** True if an earlier run of the call was held. */
export function wasHeld(context: RequestContext): boolean {
  return earlier(context, 1) !== undefined;
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
