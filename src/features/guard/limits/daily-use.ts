/** The daily use of each principal and tool, stored in the durable store so that a crash returns little of it. */
import type { Clock } from '../../../core/kernel/clock.ts';
import { errorFields, type RuntimeLog } from '../../../core/kernel/operator-log.ts';
import { sha256 } from '../../../core/kernel/sha256.ts';
import { isObject, messageOf } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { ReplyWrite, Store } from '../../../core/store/store.ts';

const DAY_MS = 86_400_000;
/** Calls after which the use is stored, and the most that a crash may return: further calls wait for the store. */
const STORE_AT = 50;
const MAX_UNSTORED = 100;
/** Uses in one batch when the server stops. */
const BATCH = 1_000;
/** Milliseconds for which the use of a day stays in the store after its end. */
const SLACK_MS = 3_600_000;

interface DailyUseOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: RuntimeLog;
}

/** The use of one principal and tool. */
export interface DailyUse {
  readonly actor: string;
  /** Days since 1970, in UTC. */
  day: number;
  used: number;
  /** Calls since the use was stored. */
  unstored: number;
  /** Set while the use is read or written. */
  waits: Promise<void> | undefined;
  /** True if the store did not accept it last: calls then do not wait. */
  failing: boolean;
}

export class DailyUses {
  readonly #options: DailyUseOptions;
  #reported = false;

  constructor(options: DailyUseOptions) {
    this.#options = options;
  }

  /** The use of a principal that is not in memory. A durable store may have it. */
  open(tool: string, principal: string): DailyUse {
    const { store } = this.#options;
    const actor = `server/limits/${sha256(`${tool}\n${principal}`)}`;
    const use: DailyUse = { actor, day: this.#today(), used: 0, unstored: 0, waits: undefined, failing: false };
    if (store.durable) use.waits = this.#load(use);
    return use;
  }

  /** @returns a promise if a call must wait for the store before it is admitted */
  mustWait(use: DailyUse): Promise<void> | undefined {
    const today = this.#today();
    // A clock that is set back around midnight returns nothing.
    if (today > use.day || today < use.day - 1) {
      use.day = today;
      use.used = 0;
      use.unstored = 0;
    }
    return use.unstored === 0 || (use.unstored >= MAX_UNSTORED && !use.failing) ? use.waits : undefined;
  }

  /** Counts one call. */
  count(use: DailyUse, cost: number): void {
    use.used += cost;
    use.unstored += 1;
    if (use.unstored >= STORE_AT) this.keep(use);
  }

  /** Milliseconds until the next day. */
  untilTomorrow({ day }: DailyUse): number {
    return (day + 1) * DAY_MS - this.#options.clock.date();
  }

  /** Stores a use, unless it is being stored. */
  keep(use: DailyUse): void {
    const { store } = this.#options;
    if (!store.durable || use.waits || use.unstored === 0) return;
    const before = use.unstored;
    const { day } = use;
    use.waits = store
      .commit([writeOf(use)])
      .then(
        () => {
          // A new day counts from zero.
          if (use.day === day) use.unstored -= before;
          use.failing = false;
          this.#reported = false;
        },
        (error: unknown) => this.#failed(use, error),
      )
      .then(() => {
        use.waits = undefined;
      });
  }

  /** Stores all uses. Resolves when they are durable, or cannot be. */
  async keepAll(uses: Iterable<DailyUse>): Promise<void> {
    const { store } = this.#options;
    if (!store.durable) return;
    const writes = [...uses].filter(({ unstored, day }) => unstored > 0 && day >= this.#today()).map(writeOf);
    for (let at = 0; at < writes.length; at += BATCH) {
      try {
        await store.commit(writes.slice(at, at + BATCH));
      } catch (error) {
        return this.#failed(undefined, error);
      }
    }
  }

  #today(): number {
    return Math.floor(this.#options.clock.date() / DAY_MS);
  }

  async #load(use: DailyUse): Promise<void> {
    try {
      const text = await this.#options.store.reply(use.actor, REQUEST);
      const stored = text === undefined || text === '' ? undefined : fromText(text, use.actor);
      if (!isObject(stored) || typeof stored.day !== 'number' || typeof stored.used !== 'number') return;
      if (stored.day !== use.day && stored.day !== use.day + 1) return;
      use.day = stored.day;
      use.used += stored.used;
    } catch (error) {
      this.#failed(use, error);
    } finally {
      use.waits = undefined;
    }
  }

  #failed(use: DailyUse | undefined, error: unknown): void {
    if (use) use.failing = true;
    if (this.#reported) return;
    this.#reported = true;
    this.#options.log(
      'warning',
      `daily limits are counted in memory only, until the store works: ${messageOf(error)}`,
      errorFields('store', error),
    );
  }
}

/** The use of a day is one reply in the store: it expires with its day. */
const REQUEST = 'day';

function writeOf({ actor, day, used }: DailyUse): ReplyWrite {
  return {
    type: 'reply',
    actor,
    request: REQUEST,
    data: toText({ day, used }),
    expires: (day + 1) * DAY_MS + SLACK_MS,
  };
}
