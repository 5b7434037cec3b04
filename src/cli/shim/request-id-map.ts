/** What servers ask an agent, one server after the other: each counts its requests from one, so the agent knows those of a later server by other ids. */
import type { ScannedMessage } from './scan.ts';
import { idKey, notification, withId } from './shim-messages.ts';

export class RequestIdMap {
  /** Open now: the id that the agent knows, and that of the server. */
  readonly #open = new Map<string, string>();

  /** The server asks. @param connection counts servers, from 1 @returns what the agent is told in place of it, if anything */
  asked(key: string, seen: ScannedMessage, connection: number): string | undefined {
    // The ids of a batch stay as they are: only the first revisions have those, and their servers were not restarted.
    const known = connection > 1 && seen.line !== undefined ? idKey(`${connection}:${unquoted(key)}`) : key;
    this.#open.set(known, key);
    return known === key ? undefined : withId(seen.body, known);
  }

  /** The server takes a question back. @returns what the agent is told in place of it, if anything */
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

  /** The agent answers. @returns what the server is told; undefined where it has not asked: that would puzzle it */
  answered(key: string, seen: ScannedMessage, line: string): string | undefined {
    const theirs = this.#open.get(key);
    this.#open.delete(key);
    if (theirs === undefined) return undefined;
    return theirs === key || seen.line === undefined ? line : withId(seen.body, theirs);
  }

  /** The server is gone. @returns what the agent is told: nobody waits for its answers */
  lost(reason: string): readonly string[] {
    const all = [...this.#open.keys()];
    this.#open.clear();
    return all.map((known) => notification('notifications/cancelled', { requestId: JSON.parse(known), reason }));
  }
}

function unquoted(key: string): string {
  return key.replace(/^"|"$/g, '');
}
