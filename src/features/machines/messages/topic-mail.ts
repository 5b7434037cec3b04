/** Delivers the events that instances emit to the topics of the server. */
import { isObject, messageOf } from '../../../core/protocol/json.ts';
import type { Deliver } from './outbox.ts';
import { Undeliverable } from './undeliverable.ts';

/** The topics of the server, which recognize an event by its id. */
interface Topics {
  emit(name: string, data: object, options: EmittedAs): Promise<unknown>;
}

interface EmittedAs {
  readonly id: string;
  readonly at: number;
  readonly owner: string | undefined;
}

/** The faults of an event that no further attempt stores. */
const FINAL: readonly unknown[] = ['unknown', 'invalid', 'limit'];

export function topicMail(topics: () => Topics): Deliver {
  return async ({ to, id, at, body }) => {
    if (to.kind !== 'topic') throw new Undeliverable('unknown', `expected a topic, got ${to.machine}`);
    try {
      await topics().emit(to.name, body, { id, at, owner: to.owner });
    } catch (error) {
      const fault = isObject(error) ? error.fault : undefined;
      if (!FINAL.includes(fault)) throw error;
      throw new Undeliverable(fault === 'unknown' ? 'unknown' : 'refused', messageOf(error));
    }
  };
}
