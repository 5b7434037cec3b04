/** Opens the parts of the approvals of a server when they are first used. */
import type { Core } from '../../core/server/feature.ts';
import { asking } from '../asking/asking.feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { ApprovalPolicy } from './approval-interface.ts';
import { policyRequirements } from './approval-policy.ts';
import { ApprovalTable } from './approval-table.ts';
import { APPROVALS_PATH } from './approvals-options.ts';
import { HeldCalls, type HeldCallsOptions } from './held-calls.ts';
import type { LocalPages } from './local-pages.ts';
import type { PolicyWarnings } from './policy-warnings.ts';

/** Opens the table, with its metrics. */
export function openApprovalTable(core: Core): ApprovalTable {
  const { metrics } = core.system;
  const counted = metrics.counter(
    'troupe.approvals',
    '{approval}',
    'Approvals by the state that they have entered.',
    'troupe.state',
  );
  const table = new ApprovalTable({
    ...{ core, counted },
    audit: core.service(audit)?.mailbox,
    shared: core.service(cluster).shared,
  });
  core.bus.on('principal.forgotten', ({ principal, settling }) => void settling.push(table.forget(principal)));
  metrics.gauge('troupe.approvals.open', '{approval}', 'Approvals that wait for people.', () => table.open);
  metrics.gauge('troupe.approvals.oldest', 's', 'Age of the oldest open approval at this node.', () => table.oldest);
  return table;
}

/** @param local opens the pages of the user of this machine */
export function openHeldCalls(
  { core, ...parts }: Pick<HeldCallsOptions, 'core' | 'table' | 'demands' | 'warnings'>,
  local: () => LocalPages,
): HeldCalls {
  const pageOf = (id: string): string | undefined => {
    const [address] = core.transports.flatMap((transport) => transport.pageAddress?.(APPROVALS_PATH) ?? []);
    return address?.identifies ? `${address.url}/${id}` : undefined;
  };
  return new HeldCalls({
    ...{ ...parts, core, pageOf },
    localPageOf: (id) => local().address(id),
    admission: core.service(authorization),
    interactive: core.service(asking).interactive,
  });
}

/** Looks at the policies of tools that are offered. */
export function warnOf(warnings: PolicyWarnings, policies: readonly ApprovalPolicy[]): void {
  for (const policy of policies) warnings.lasts(policyRequirements(policy));
}
