/** Holds calls of tools until they are approved, and lets their handlers ask for approvals (`ctx.approve`). */

import type { ApprovalRequest, CallApproval } from '../../core/execution/approving.ts';
import { NotApproved } from '../../core/execution/approving.ts';
import type { Context } from '../../core/execution/context.ts';
import type { ToolCall } from '../../core/execution/execution.ts';
import { type RequestContext, requestContextOf } from '../../core/execution/request-context.ts';
import type { HandlerGate } from '../../core/execution/stages.ts';
import { failed } from '../../core/execution/tool-result.ts';
import type { RuleCondition } from '../../core/messages/authorization-rule.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isJsonObject } from '../../core/protocol/json.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { turnAway } from '../../core/requests/active-request.ts';
import { continuesElsewhere } from '../asking/asking-context.ts';
import type { Admission } from '../guard/authorization/admission.ts';
import { RuleVerdict } from '../guard/authorization/rule-verdict.ts';
import {
  ApprovalAsking,
  type ApprovalAskingOptions,
  type ApprovalDemand,
  type Decided,
  earlierApproval,
  givenStep,
  type Refused,
  type TermsNow,
} from './approval-asking.ts';
import { ApprovalError } from './approval-error.ts';
import { type ApprovalTerms, readRequest, termsOf } from './approval-policy.ts';
import type { StoredApproval } from './approval-record.ts';
import { notCarriedOut } from './approval-text.ts';
import type { PolicyWarnings } from './policy-warnings.ts';

export interface HeldCallsOptions extends ApprovalAskingOptions {
  readonly admission: Admission;
  readonly warnings: PolicyWarnings;
  /** The demands of features on calls for which no rule and no tool demands an approval. */
  readonly demands: readonly CallDemand[];
}

/** Demands an approval of a call; undefined: nothing. */
export type CallDemand = (call: ToolCall, request: RequestView) => RuleCondition | undefined;

/** The step of a call that remembers its approval. */
const STEP = 'io.troupe/approval';
/** The same for a part of its handler, before its title. */
const PART = 'io.troupe/approve';

export class HeldCalls {
  readonly #options: HeldCallsOptions;
  readonly #asking: ApprovalAsking;
  /** The number of parts of each running handler that have asked, by title. */
  readonly #parts = new WeakMap<RequestContext, Map<string, number>>();

  constructor(options: HeldCallsOptions) {
    this.#options = options;
    this.#asking = new ApprovalAsking(options);
  }

  /** Runs a call once it is approved, or returns a result for its model that says why it does not run. */
  async run(call: ToolCall, ctx: Context, next: Parameters<HandlerGate>[2]): Promise<CallToolResult> {
    const context = requestContextOf(ctx);
    const { first } = context;
    // The model corrects the call first: no person is asked about one that cannot run.
    const checked = await call.implementation.input.check(call.arguments);
    if (!checked.ok) return next();
    const demand: ApprovalDemand = {
      ...{ call, ctx, context, step: STEP },
      terms: (isNew) => this.#termsNow(call, context, isNew),
    };
    const decided = await this.#holding(demand);
    if (!('result' in decided)) return this.#carryOut(decided, context, ctx, next);
    turnAway(first);
    turnAway(context.current);
    return decided.result;
  }

  /**
   * Waits until people have approved a part of a handler, and uses the approval.
   *
   * @throws {NotApproved} if it must not be carried out now
   * @throws {TypeError} for an invalid request, and where no call of a tool runs
   */
  async approve(context: RequestContext, request: ApprovalRequest): Promise<CallApproval> {
    const policy = readRequest(request);
    const call = this.#callOf(context);
    const { title, show = {} } = request;
    const terms = termsOf([], policy, call.tool.name);
    this.#options.warnings.look([], terms);
    const demand: ApprovalDemand = {
      ...{ call, ctx: context, context, part: { title, show }, step: this.#stepOf(context, title) },
      terms: async (isNew) => (isNew ? { terms } : await this.#stillAllowed(call, context, terms)),
    };
    const decided = await this.#holding(demand);
    if ('result' in decided) throw new NotApproved(decided.result);
    const { approval } = decided;
    if (!approval) throw new TypeError('ctx.approve: expected a policy that demands an approval');
    if (decided.isFirst) {
      // Steps after this one show another run that the handler has continued.
      await context.step(givenStep(demand.step), () => true);
      this.#end(approval, 'succeed');
    }
    return seenByHandler(approval);
  }

  /** @returns the result of a call that cannot be held, because the store fails */
  async #holding(demand: ApprovalDemand): Promise<Decided | Refused> {
    try {
      return await this.#asking.hold(demand);
    } catch (error) {
      if (!(error instanceof ApprovalError)) throw error;
      const { core } = this.#options;
      const { first } = demand.context;
      const incident = error.fault === 'store' ? undefined : core.system.incident('holding a call', error, first);
      const what = notCarriedOut({ tool: demand.call.tool.name, part: demand.part?.title });
      return {
        result: failed(`${what}: ${error.message}. Nobody has approved it now. Call it again later.`, incident),
      };
    }
  }

  #callOf({ first, implementation }: RequestContext): ToolCall {
    const { operation } = first;
    if (operation.method !== 'tools/call' || !implementation)
      throw new TypeError(
        `ctx.approve: only the handler of a tool can ask for an approval, got ${operation.method}. Ask in a tool, or let a rule decide who may use this`,
      );
    const tool = this.#options.core.elements.catalogues.tools.get(operation.name)?.definition;
    if (!tool) throw new NotApproved(failed(`The tool "${operation.name}" was removed. Nothing was approved.`));
    return { tool, arguments: operation.arguments, implementation };
  }

  /** Two parts of a handler with one title are two. */
  #stepOf(context: RequestContext, title: string): string {
    const parts = this.#parts.get(context) ?? new Map<string, number>();
    this.#parts.set(context, parts);
    const place = (parts.get(title) ?? 0) + 1;
    parts.set(title, place);
    return `${PART}${place === 1 ? '' : ` ${place}`} ${title}`;
  }

  async #stillAllowed(call: ToolCall, context: RequestContext, terms: ApprovalTerms | undefined): Promise<TermsNow> {
    const now = await this.#termsNow(call, context, false);
    return 'result' in now ? now : { terms };
  }

  /** The terms that the rules demand now. @param admitted the request has just been admitted, if it was admitted in this process */
  async #termsNow(call: ToolCall, context: RequestContext, admitted: boolean): Promise<TermsNow> {
    const { admission } = this.#options;
    const { tool } = call;
    const given = admitted ? admission.conditionsOf(context.first) : undefined;
    const isNew = admitted && context.first.recorded?.id === undefined;
    if (given || isNew) return { terms: this.#joined(given ?? [], call, context) };
    const args = isJsonObject(call.arguments) ? call.arguments : {};
    const verdict = await admission.judgeCall(context.current, tool.name, args);
    if (!(verdict instanceof RuleVerdict)) return { terms: this.#joined([], call, context) };
    if (verdict.allows) return { terms: this.#joined(verdict.conditions, call, context) };
    return { result: failed(`The call of "${tool.name}" was not carried out: it is not allowed any more.`) };
  }

  /** The terms of rules and of the tool; without any, those of features. */
  #joined(conditions: readonly RuleCondition[], call: ToolCall, { first }: RequestContext): ApprovalTerms | undefined {
    const { tool, implementation } = call;
    const terms = termsOf(conditions, implementation.approve, tool.name);
    this.#options.warnings.look(conditions, terms);
    if (terms) return terms;
    return termsOf(
      this.#options.demands.flatMap((demand) => demand(call, first) ?? []),
      undefined,
      tool.name,
    );
  }

  /** Runs the call, and stores how it has ended. */
  async #carryOut(
    { approval, isFirst }: Decided,
    context: RequestContext,
    ctx: Context,
    next: Parameters<HandlerGate>[2],
  ): Promise<CallToolResult> {
    const run = isFirst ? 'first' : undefined;
    if (!approval) return next(run);
    context.approval = seenByHandler(approval);
    try {
      const result = await next(run);
      this.#end(approval, result.isError === true ? 'fail' : 'succeed');
      return result;
    } catch (error) {
      // Another process continues the call.
      if (!continuesElsewhere(ctx)) this.#end(approval, 'fail');
      throw error;
    }
  }

  #end({ id }: StoredApproval, event: 'succeed' | 'fail'): void {
    const { table, core } = this.#options;
    table.end(id, event).catch((error: unknown) => core.system.incident('storing the end of an approved call', error));
  }
}

/** True if an earlier run of the call was held. */
export function wasHeld(context: RequestContext): boolean {
  return earlierApproval(context, STEP) !== undefined;
}

function seenByHandler({ id, given, grant }: StoredApproval): CallApproval {
  const reason = given.findLast((each) => each.reason !== undefined)?.reason;
  return {
    ...{ id, approvers: given.map(({ principal }) => principal) },
    ...(reason === undefined ? {} : { reason }),
    ...(grant === undefined ? {} : { grant }),
  };
}
