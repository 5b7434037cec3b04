/** The results that a script has learned: in one order, with the ends of its calls and the blocks that it can return. */
import { heapBytes } from '../../../core/protocol/heap.ts';
import type { ContentBlock } from '../../../core/protocol/types.ts';
import { toText } from '../../../core/store/serialize.ts';
import type { Delivery } from '../sandbox/script.ts';
import type { CallValue, ReturnableBlocks } from './call-value.ts';
import { endedOf, type OpenCall } from './open-call.ts';
import type { RecordedDelivery } from './recorded-calls.ts';
import type { RunEvent } from './run-journal.ts';
import type { EndedCall } from './run-result.ts';

/** The end of a call that the script has not learned. */
export interface ReadyResult {
  readonly open: OpenCall;
  readonly given: CallValue;
}

/** The results that a script learns next, with the events of its journal, their bytes in memory and their characters. */
interface NextResults {
  readonly deliveries: readonly Delivery[];
  readonly events: readonly RunEvent[];
  readonly bytes: number;
  readonly length: number;
}

export class LearnedResults {
  readonly deliveries: Delivery[] = [];
  /** The calls that have ended: also those of whose ends the script does not learn. */
  readonly ended: EndedCall[] = [];
  /** By their handles. */
  readonly blocks = new Map<string, ContentBlock>();
  readonly #numbers = new Set<number>();
  /** The time that the script has learned last. */
  #at: number;

  constructor(startedAt: number, recorded: readonly RecordedDelivery[]) {
    this.#at = startedAt;
    for (const { delivery, name, effect, blocks } of recorded) {
      this.ended.push({
        number: delivery.number,
        name,
        effect,
        fault: 'error' in delivery ? delivery.error : undefined,
      });
      this.#learn(delivery, blocks);
    }
  }

  has(number: number): boolean {
    return this.#numbers.has(number);
  }

  #learn(delivery: Delivery, blocks: ReturnableBlocks = {}): void {
    for (const [handle, block] of Object.entries(blocks)) this.blocks.set(handle, block);
    this.#at = Math.max(this.#at, delivery.at);
    this.#numbers.add(delivery.number);
    this.deliveries.push(delivery);
  }

  /** Adds the next results, in this order. @param date the time at which the script learns them */
  learn(ready: readonly ReadyResult[], date: number): NextResults {
    const deliveries: Delivery[] = [];
    const events: RunEvent[] = [];
    let bytes = 0;
    let length = 0;
    for (const { open, given } of ready) {
      const { name, digest, effect, call } = open;
      const at = Math.max(this.#at, date);
      const delivery: Delivery = {
        ...{ number: call.number, at },
        ...('error' in given ? given : { value: given.value }),
      };
      const blocks = 'error' in given ? undefined : given.blocks;
      const more = { ...(effect ? { effect: true as const } : {}), ...(blocks ? { blocks } : {}) };
      bytes += heapBytes(delivery) + (blocks ? heapBytes(blocks) : 0);
      length += ('value' in delivery ? delivery.value.length : 0) + (blocks ? toText(blocks).length : 0);
      deliveries.push(delivery);
      events.push({ type: 'delivered', name, digest, ...more, ...delivery });
      this.ended.push(endedOf(open, given));
      this.#learn(delivery, blocks);
    }
    return { deliveries, events, bytes, length };
  }
}
