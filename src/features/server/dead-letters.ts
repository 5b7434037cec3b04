/** The dead letters of a server, of each kind of work that it attempts: lists them, and has one delivered again for an operator. */
import { messageOf } from '../../core/protocol/json.ts';
import type { Core } from '../../core/server/feature.ts';
import type { AttemptKind } from '../../core/store/attempts.ts';
import type { DeadLetter } from '../../core/store/store.ts';
import type { WebhookSubscriptions } from '../events/delivery/webhook-subscriptions.ts';
import { events } from '../events/events.feature.ts';
import { hooks } from '../hooks/hooks.feature.ts';
import { machines } from '../machines/machines.feature.ts';
import { messageOfLetter, nameOfMessage } from '../machines/messages/out-message.ts';
import { schedules } from '../schedules/schedules.feature.ts';

/** Work that was given up. */
export interface GivenUp {
  /** `crash`: mail that crashed its actor or the process. It is released instead (`server.release`). */
  readonly kind: AttemptKind | 'crash';
  /** Names it for {@link DeadLetters.again}. */
  readonly ref: string;
  /** Names the work and its receiver in one line, without its data. */
  readonly what: string;
  readonly error: string;
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly incident: string | undefined;
}

/** Maximum number of letters of one read. */
const MOST = 1_000;

export class DeadLetters {
  readonly #core: Core;

  /** @param core of a server whose store is open */
  constructor(core: Core) {
    this.#core = core;
  }

  /**
   * The dead letters that this node knows, the newest first: those of webhooks and of events are of this node, the others of all nodes.
   *
   * @param limit from 1 to 1,000
   * @throws {StoreError}
   */
  async list(limit = 100): Promise<readonly GivenUp[]> {
    const letters = await this.#core.store.deadLetters(Math.min(limit, MOST));
    const deliveries = (await this.#hooks?.list({ state: 'dead', limit })) ?? [];
    return [
      ...letters.map((letter) => ofStore(letter)),
      ...deliveries.map(
        ({ ref, path, type, id, error = '', attempt: attempts, at }): GivenUp => ({
          ...{ kind: 'webhook', ref: `webhook ${ref}`, what: `${path} ${type ?? ''} ${id}` },
          ...{ error, attempts, at, incident: undefined },
        }),
      ),
      ...[...(this.#events?.deadEvents() ?? [])].map(
        ({ record, event: { id, seq, at, attempts, category: error } }): GivenUp => ({
          ...{ kind: 'event', ref: `event ${record.id} ${seq}`, error, attempts, at, incident: undefined },
          what: `${record.name} ${id} to ${new URL(record.url).host} of ${record.principal}`,
        }),
      ),
    ]
      .sort((a, b) => b.at - a.at)
      .slice(0, limit);
  }

  /**
   * Has one delivered again: once, now.
   *
   * @param ref as {@link DeadLetters.list} returns it
   * @returns the outcome in words; undefined if it is not stored any more, or cannot be delivered again
   * @throws {StoreError}
   */
  async again(ref: string): Promise<string | undefined> {
    const [kind, id = '', seq] = ref.split(' ');
    switch (kind) {
      case 'webhook': {
        const sent = await this.#hooks?.again(id);
        return sent && `sent again as ${sent}`;
      }
      case 'event': {
        const failure = this.#events ? await this.#events.again(id, Number(seq)) : 'gone';
        return failure === 'gone' ? undefined : failure ? `failed again: ${failure}` : 'accepted';
      }
      default: {
        const letter = (await this.#core.store.deadLetters(MOST)).find(({ incident }) => incident === id);
        return letter && this.#ofStoreAgain(letter);
      }
    }
  }

  async #ofStoreAgain(letter: DeadLetter): Promise<string | undefined> {
    if (isSlot(letter)) return this.#core.service(schedules).again(letter) ? 'runs now' : undefined;
    if (!messageOfLetter(letter)) return undefined;
    try {
      return (await this.#core.service(machines).again(letter)) ? 'accepted' : undefined;
    } catch (error) {
      return `failed again: ${messageOf(error)}`;
    }
  }

  get #hooks() {
    return this.#core.service(hooks)();
  }

  get #events(): WebhookSubscriptions | undefined {
    return this.#core.capabilities.offered.events && this.#core.service(events).webhooks.created?.subscriptions;
  }
}

function isSlot({ actor }: DeadLetter): boolean {
  return actor.startsWith('schedule/');
}

function ofStore(letter: DeadLetter): GivenUp {
  const { actor, mail, error, attempts, at, incident } = letter;
  const shared = { ref: `letter ${incident}`, error, attempts, at, incident };
  if (isSlot(letter)) return { kind: 'schedule', what: mail, ...shared };
  const message = messageOfLetter(letter);
  return message
    ? { kind: 'message', what: `${nameOfMessage(message)}: ${String(message.body.type ?? '')}`, ...shared }
    : { kind: 'crash', what: actor, ...shared };
}
