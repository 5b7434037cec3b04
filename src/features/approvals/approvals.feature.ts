/** Approvals: a call waits until people have approved it, then runs once or never. */
import { requestContextOf } from '../../core/execution/request-context.ts';
import type { HandlerGate } from '../../core/execution/stages.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { Approval, ApprovalListener, ApprovalPolicy, Approvals } from './approval-interface.ts';
import { readApproval } from './approval-policy.ts';
import { viewOf } from './approval-record.ts';
import { APPROVALS_PATH, APPROVE, OPTIONS } from './approvals-options.ts';
import { type CallDemand, wasHeld } from './held-calls.ts';
import { LocalPages } from './local-pages.ts';
import { openApprovalTable, openHeldCalls, warnOf } from './open-approvals.ts';
import { PolicyWarnings } from './policy-warnings.ts';

/** The service for other parts of a server: `server.approvals`, and places to listen. */
export interface ApprovalService extends Approvals {
  /** Calls back for each change of an approval at this node. @returns removes the listener */
  listen(listener: ApprovalListener): () => void;
  /** Adds what a feature demands of calls for which no rule and no tool demands an approval. @param demand undefined: nothing */
  demands(demand: CallDemand): void;
  /**
   * Waits until people have decided about an approval, or its time has passed.
   *
   * @throws {ApprovalError} `unknown`, `store`; the reason of the signal
   */
  wait(id: string, signal: AbortSignal): Promise<Approval>;
}

export const approvals: Feature<ApprovalService> = {
  name: 'approvals',
  options: OPTIONS,
  open(core) {
    const { elements, stages, store, options } = core;
    const demands: CallDemand[] = [];
    const table = new Lazy(() => openApprovalTable(core));
    const warnings = new Lazy(() => new PolicyWarnings(core));
    /** The policies of tools that were offered before the server listens; undefined since then. */
    let offered: ApprovalPolicy[] | undefined = [];
    const local = new Lazy(() => new LocalPages(service, core.keys));
    const held = new Lazy(() =>
      openHeldCalls({ core, demands, warnings: warnings.value, table: table.value }, () => local.value),
    );
    const gate: HandlerGate = (call, ctx, next) => {
      const context = requestContextOf(ctx);
      const { first } = context;
      const isHeld =
        call.implementation.approve !== undefined ||
        core.service(authorization).conditionsOf(first) !== undefined ||
        demands.some((demand) => demand(call, first) !== undefined) ||
        // It was admitted before, perhaps by another process.
        (first.recorded?.id !== undefined && (first.admitted === 0 || wasHeld(context)));
      return isHeld ? held.value.run(call, ctx, next) : next();
    };
    const begin = (): void => stages.fill('approve', gate);
    elements.approve = (context, request) => held.value.approve(context, request);
    elements.toolOptions.push(APPROVE);
    // Loads the reader when a rule first demands an approval.
    elements.decisions.set('approve', (given) => readApproval(given));
    elements.guarded.push(begin);
    elements.offeredTool.push(({ approve }) => {
      if (approve === undefined) return;
      begin();
      if (approve === true) return;
      if (offered) offered.push(approve);
      else warnOf(warnings.value, [approve]);
    });
    const service: ApprovalService = {
      list: (query) => table.value.list(query),
      get: (id) => table.value.get(id),
      decide: (id, decision) => table.value.decide(id, decision),
      mayDecide: (id, approver) => table.value.mayDecide(id, approver),
      revoke: (id, by) => table.value.revoke(id, by),
      grants: (query) => table.value.grants(query),
      listen: (listener) => table.value.listen(listener),
      demands(demand) {
        demands.push(demand);
        begin();
      },
      wait: async (id, signal) => viewOf(await table.value.wait(id, signal)),
    };
    const pages = new Lazy(async () => {
      const { ApprovalPages } = await import('./approval-pages.ts');
      return new ApprovalPages(service, core.keys);
    });
    return {
      service,
      pages: { [APPROVALS_PATH]: async (request) => (await pages.value).page(request) },
      async restore() {
        // Calls of other processes may wait for approvals, although no rule of this one demands any.
        if (!store.durable) return;
        if (!options.cluster && (await store.list({ kind: 'approval', limit: 1 })).length === 0) return;
        begin();
        await table.value.recover();
      },
      started() {
        if (offered?.length) warnOf(warnings.value, offered);
        offered = undefined;
      },
      facts: () => (table.created ? { 'open approvals': table.created.open } : {}),
      stop() {
        local.created?.close();
        table.created?.stop();
      },
    };
  },
};
