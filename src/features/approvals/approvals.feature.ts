/** Approvals: a call waits until people have approved it, then runs once or never. */
import { requestContextOf } from '../../core/execution/request-context.ts';
import type { HandlerGate } from '../../core/execution/stages.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { asking } from '../asking/asking.feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { Approval, ApprovalListener, ApprovalPolicy, Approvals } from './approval-interface.ts';
import { policyRequirements, readApproval } from './approval-policy.ts';
import { type StoredApproval, viewOf } from './approval-record.ts';
import { ApprovalTable } from './approval-table.ts';
import { APPROVALS_PATH, APPROVE, OPTIONS } from './approvals-options.ts';
import { type CallDemand, HeldCalls, wasHeld } from './held-calls.ts';
import { PolicyWarnings } from './policy-warnings.ts';

/** The service for other parts of a server: `server.approvals`, and places to listen and to tell models. */
export interface ApprovalService extends Approvals {
  /** Calls back for each change of an approval at this node. @returns removes the listener */
  listen(listener: ApprovalListener): () => void;
  /**
   * Adds a sentence to the result of a call that waits for people: where they decide. @param way returns undefined if it has none
   * for an approval
   */
  tells(way: (approval: Pick<StoredApproval, 'id' | 'tool' | 'principal'>) => string | undefined): void;
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
    const { system, elements, stages, store, options } = core;
    const { metrics } = system;
    const ways: ((approval: StoredApproval) => string | undefined)[] = [];
    const demands: CallDemand[] = [];
    const table = new Lazy(() => {
      const counted = metrics.counter(
        'troupe.approvals',
        '{approval}',
        'Approvals by the state that they have entered.',
        'troupe.state',
      );
      const created = new ApprovalTable({
        ...{ core, counted },
        audit: core.service(audit)?.mailbox,
        shared: core.service(cluster).shared,
      });
      metrics.gauge('troupe.approvals.open', '{approval}', 'Approvals that wait for people.', () => created.open);
      metrics.gauge(
        'troupe.approvals.oldest',
        's',
        'Age of the oldest open approval at this node.',
        () => created.oldest,
      );
      return created;
    });
    const warnings = new Lazy(() => new PolicyWarnings(core));
    /** The policies of tools that were offered before the server listens; undefined since then. */
    let offered: ApprovalPolicy[] | undefined = [];
    /** The address of the page of an approval, if people sign in to this server. */
    const pageOf = (id: string): string | undefined => {
      const [address] = core.transports.flatMap((transport) => transport.pageAddress?.(APPROVALS_PATH) ?? []);
      return address?.identifies ? `${address.url}/${id}` : undefined;
    };
    const held = new Lazy(
      () =>
        new HeldCalls({
          ...{ core, ways, pageOf, demands, warnings: warnings.value, table: table.value },
          admission: core.service(authorization),
          interactive: core.service(asking).interactive,
        }),
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
      else warnings.value.lasts(policyRequirements(approve));
    });
    const service: ApprovalService = {
      list: (query) => table.value.list(query),
      get: (id) => table.value.get(id),
      decide: (id, decision) => table.value.decide(id, decision),
      mayDecide: (id, approver) => table.value.mayDecide(id, approver),
      revoke: (id, by) => table.value.revoke(id, by),
      grants: (query) => table.value.grants(query),
      listen: (listener) => table.value.listen(listener),
      tells: (way) => void ways.push(way),
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
    service.tells(({ id }) => {
      const page = pageOf(id);
      return page === undefined ? undefined : `Whoever may approve it decides on the page ${page}.`;
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
        for (const policy of offered ?? []) warnings.value.lasts(policyRequirements(policy));
        offered = undefined;
      },
      facts: () => (table.created ? { 'open approvals': table.created.open } : {}),
      stop: () => table.created?.stop(),
    };
  },
};
