/** Maps the ids of server requests between the agent and a sequence of servers: each server counts from one, so the ids of later servers are prefixed. */
import type { ScannedMessage } from './scan.ts';
import { idKey, notification, withId } from './shim-messages.ts';

export class RequestIdMap {
  /** The open requests: the agent's id to the server's id. */
  readonly #open = new Map<string, string>();

  /** The server sends a request. @param connection the number of the server, from 1 @returns the request under a new id; undefined if the id stays */
  asked(key: string, seen: ScannedMessage, connection: number): string | undefined {
    // The ids in a batch stay. Only the first two revisions have batches.
    const known = connection > 1 && seen.line !== undefined ? idKey(`${connection}:${unquoted(key)}`) : key;
    this.#open.set(known, key);
    return known === key ? undefined : withId(seen.body, known);
  }

  /** The server cancels its request. @returns the cancellation under the agent's id; undefined if the id is the same */
  withdrawn(seen: ScannedMessage): string | undefined {
    const theirs = idKey(seen.params.requestId);
    for (const [known, key] of this.#open) {
      if (key !== theirs) continue;
      this.#open.delete(known);
      if (known === key) return undefined;
      return notification('notifications/cancelled', { ...seen.params, requestId: JSON.parse(known) });
    }
    return undefined;
  }

  /** The agent responds. @returns the response under the server's id; undefined if this server has not sent the request */
  answered(key: string, seen: ScannedMessage, line: string): string | undefined {
    const theirs = this.#open.get(key);
    this.#open.delete(key);
    if (theirs === undefined) return undefined;
    return theirs === key || seen.line === undefined ? line : withId(seen.body, theirs);
  }

  /** The connection to the server has ended. @returns cancellations of all open requests for the agent */
  lost(reason: string): readonly string[] {
    const all = [...this.#open.keys()];
    this.#open.clear();
    return all.map((known) => notification('notifications/cancelled', { requestId: JSON.parse(known), reason }));
  }
}

function unquoted(key: string): string {
  return key.replace(/^"|"$/g, '');
}
