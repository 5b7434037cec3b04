/** Tells the operator, once for each server, what a policy does not keep: the version of a rule, or an approval after a restart. */
import type { RuleCondition } from '../../core/messages/authorization-rule.ts';
import type { Core } from '../../core/server/feature.ts';
import type { ApprovalTerms, Requirement } from './approval-policy.ts';
import { whoOf } from './approval-policy.ts';

export class PolicyWarnings {
  readonly #core: Pick<Core, 'system' | 'store' | 'transports'>;
  readonly #said = new Set<'name' | 'store'>();

  constructor(core: Pick<Core, 'system' | 'store' | 'transports'>) {
    this.#core = core;
  }

  /** A call is held by these conditions. */
  look(conditions: readonly RuleCondition[], terms: ApprovalTerms | undefined): void {
    if (conditions.some(({ rule: { name, version } }) => !name && !version))
      this.#say(
        'name',
        'a rule without a name demands approvals: people cannot read why, and an approval stays valid when the rule changes, because a function cannot be compared. Give it both: server.authorize(rule, { name: "large refunds", version: "1" })',
      );
    if (terms) this.lasts(terms.requirements);
  }

  /** People other than the caller decide. */
  lasts(requirements: readonly Pick<Requirement, 'by'>[]): void {
    const { store, transports } = this.#core;
    const other = requirements.find(({ by }) => by !== 'caller');
    // A server in the memory of a test ends with it.
    if (!other || store.durable || transports.every(({ name }) => name === 'memory')) return;
    this.#say(
      'store',
      `approvals by ${whoOf(other)} end with this process, because the server has no durable store: after a restart they are asked again. Set "store", or start with --data DIR`,
    );
  }

  #say(what: 'name' | 'store', message: string): void {
    if (this.#said.has(what)) return;
    this.#said.add(what);
    this.#core.system.log('warning', `approvals: ${message}`, { event: 'program' });
  }
}
