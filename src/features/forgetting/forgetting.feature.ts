/** Forgetting: deletes the durable data of a principal, at every node of the cluster. */
import type { Feature } from '../../core/server/feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { deletePrincipal, FORGET, type ForgottenData, serveForgetting } from './forget-principal.ts';

interface ForgettingService {
  /** The store is open. @throws {TypeError | StoreError | NodeCallError} */
  forget(principal: string): Promise<ForgottenData>;
}

export const forgetting: Feature<ForgettingService> = {
  name: 'forgetting',
  open(core) {
    const { calls } = core.service(cluster);
    calls?.serve(FORGET, (body) => serveForgetting(core, calls, body));
    return {
      service: { forget: (principal) => deletePrincipal(core, calls, principal, core.service(audit)?.mailbox) },
    };
  },
};
