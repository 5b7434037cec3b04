/** State: a small durable key-value store for each principal and each session, `ctx.state`. */
import type { State } from '../../core/execution/state.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { callerState, type StateOptions, stateOfPrincipal } from './caller-state.ts';
import { StateScopes } from './state-scopes.ts';

interface StateService {
  /** The state of a principal, also outside of its calls. @throws {StateError} for `anonymous` */
  of(principal: string): State;
}

export const state: Feature<StateService> = {
  name: 'state',
  open(core) {
    const options = new Lazy((): StateOptions => ({ scopes: new StateScopes(core), limits: core.limits }));
    const { quotas, system } = core;
    system.metrics.gauge(
      'troupe.state.scopes',
      '{scope}',
      'Scopes of state, when they were last counted.',
      () => quotas.scopes.all,
    );
    core.elements.stateOf = (request) => callerState(options.value, request);
    return {
      service: { of: (principal) => stateOfPrincipal(options.value, principal) },
      async restore() {
        const { store, options: given } = core;
        // Sessions of other processes may have state that this one deletes at their end.
        if (store.durable && (given.cluster || (await store.list({ kind: 'state', limit: 1 })).length > 0))
          options.value.scopes.followSessions();
      },
      facts: () => (options.created ? { 'scopes of state in use': options.created.scopes.size } : {}),
      // From now on, sessions leave with their process, and those in the store live on.
      handOver: () => options.created?.scopes.unfollowSessions(),
      stop: () => options.created?.scopes.stop(),
    };
  },
};
