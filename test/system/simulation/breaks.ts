/** Ways to break a simulated server on purpose: a simulator that does not find them finds nothing. */
import type { MemoryPeer } from '../../../src/index.ts';
import type { StoreBreaks } from './disk.ts';
import type { Random } from './random.ts';

export interface Breaks extends StoreBreaks {
  /** Some requests are answered twice. */
  readonly answersTwice?: boolean;
  /** Some requests are never answered. */
  readonly losesAnswers?: boolean;
  /** Some answers go to another client: what a transport does that clients share (CVE-2026-25536). */
  readonly mixesClients?: boolean;
  /** Some notifications arrive in another order than they were sent. */
  readonly reorders?: boolean;
  /** Recorded steps run again. */
  readonly forgetsSteps?: boolean;
  /** More requests are let in than the bound says. */
  readonly ignoresBounds?: boolean;
  /** Tasks that have ended work again. */
  readonly revivesTasks?: boolean;
}

/** How often something that is broken shows. */
const OFTEN = 0.05;

type Hears = (text: string) => void;

/** What stands between server and clients, and does to their texts what is broken. */
export class BrokenWire {
  readonly #breaks: Breaks;
  readonly #random: Random;
  readonly #hearers = new Set<Hears>();

  constructor(breaks: Breaks, random: Random) {
    this.#breaks = breaks;
    this.#random = random;
  }

  /** Whoever was connected is so no more. */
  forget(): void {
    this.#hearers.clear();
  }

  /** The peer as it is, where no wire is broken. */
  around(peer: MemoryPeer): MemoryPeer {
    const { answersTwice, losesAnswers, mixesClients, reorders, revivesTasks } = this.#breaks;
    if (!(answersTwice || losesAnswers || mixesClients || reorders || revivesTasks)) return peer;
    return {
      send: (text) => peer.send(text),
      close: () => peer.close(),
      vanish: () => peer.vanish(),
      pause: () => peer.pause(),
      resume: () => peer.resume(),
      closed: peer.closed,
      onText: (hears) => {
        this.#hearers.add(hears);
        void peer.closed.then(() => this.#hearers.delete(hears));
        let held: string | undefined;
        peer.onText((text) => {
          const waiting = held;
          held = undefined;
          if (reorders && text.includes('notifications/progress') && this.#random.chance(0.3)) held = text;
          else this.#tell(hears, text);
          if (waiting !== undefined) this.#tell(hears, waiting);
        });
      },
    };
  }

  #tell(hears: Hears, text: string): void {
    const { answersTwice, losesAnswers, mixesClients, revivesTasks } = this.#breaks;
    const isAnswer = text.includes('"content":[');
    const shows = isAnswer && this.#random.chance(OFTEN);
    if (losesAnswers && shows) return;
    const others = [...this.#hearers].filter((other) => other !== hears);
    const other = mixesClients && shows ? others[this.#random.below(others.length)] : undefined;
    (other ?? hears)(revivesTasks && this.#random.chance(0.3) ? text.replace('"completed"', '"working"') : text);
    if (answersTwice && shows) hears(text);
  }
}
