/** The roots that clients have named, as long as they announce changes of them. */

import type { CallOwner } from '../../core/execution/request-context.ts';
import type { SessionFacts } from '../../core/messages/client-facts.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';

interface NamedRoots {
  readonly result: JsonObject;
  readonly session: SessionFacts;
  /** The number of announced changes before the client named them. */
  readonly changes: number;
}

/** Maximum number of clients whose roots are remembered. A client whose roots were forgotten is asked again. */
const MOST = 1_024;

export class OwnedRoots {
  readonly #named = new Map<string, NamedRoots>();

  /** The result of `roots/list` of an owner; undefined if its client must be asked. */
  get(ownerKey: string): JsonObject | undefined {
    const named = this.#named.get(ownerKey);
    return named?.session.rootsChanges === named?.changes ? named?.result : undefined;
  }

  /** Remembers the roots of a session whose client announces changes. The roots of other clients may change unnoticed. */
  set({ key, session, capabilities: { roots } }: CallOwner, changes: number, result: JsonObject): void {
    if (!session || !isObject(roots) || roots.listChanged !== true) return;
    this.#named.delete(key);
    this.#named.set(key, { result, session, changes });
    const [oldest] = this.#named.keys();
    if (this.#named.size > MOST && oldest !== undefined) this.#named.delete(oldest);
  }
}
