/**
 * Places for POSTs, so that a host that hangs holds few. A host begins with some, and gets more as it responds. Hosts and principals
 * get a part of what is left, and the first POST of each needs any place. POSTs of one principal to one host wait in their order;
 * principals and hosts take turns.
 */

export interface DeliveryLimits {
  /** POSTs at once in all, for one principal, and to one host. */
  readonly all: number;
  readonly principal: number;
  readonly host: number;
}

/** The POSTs of one principal to one host. */
interface Lane {
  taken: number;
  readonly waiting: (() => void)[];
}

interface Host {
  taken: number;
  /** Places that it may have. */
  most: number;
  /** By principal. */
  readonly lanes: Map<string, Lane>;
  /** The lanes in which a POST waits. The next turn is that of the first. */
  readonly waiting: Map<string, Lane>;
}

/** Places of a host before its first response. */
const FIRST = 4;
/** A further POST needs so many free places for each that its host, or its principal, has. */
const LEFT_PER_HOST = 8;
const LEFT_PER_PRINCIPAL = 4;

export class DeliverySlots {
  readonly #limits: DeliveryLimits;
  #taken = 0;
  readonly #principals = new Map<string, number>();
  readonly #hosts = new Map<string, Host>();
  /** The hosts for which a POST waits. The next turn is that of the first. */
  readonly #waiting = new Map<string, Host>();

  constructor(limits: DeliveryLimits) {
    this.#limits = limits;
  }

  /** Takes a place, now or when one is free. */
  take(principal: string, host: string): Promise<void> | undefined {
    const places = this.#hosts.get(host) ?? { taken: 0, most: FIRST, lanes: new Map(), waiting: new Map() };
    const lane = places.lanes.get(principal) ?? { taken: 0, waiting: [] };
    this.#hosts.set(host, places);
    places.lanes.set(principal, lane);
    if (lane.waiting.length === 0 && this.#hasRoomAt(places) && this.#hasRoomFor(principal, lane)) {
      this.#count(principal, places, lane, 1);
      return undefined;
    }
    places.waiting.set(principal, lane);
    this.#waiting.set(host, places);
    return new Promise((resolve) => void lane.waiting.push(resolve));
  }

  /** Gives a place back. @param late true: the host did not respond in time */
  free(principal: string, host: string, late: boolean): void {
    const places = this.#hosts.get(host);
    const lane = places?.lanes.get(principal);
    if (!places || !lane) return;
    this.#count(principal, places, lane, -1);
    places.most = late ? 1 : Math.min(this.#limits.host, places.most + 1);
    if (lane.taken === 0 && lane.waiting.length === 0) places.lanes.delete(principal);
    if (places.lanes.size === 0) this.#hosts.delete(host);
    for (let next = this.#next(); next; next = this.#next()) next();
  }

  /** Takes a place for a POST that waits. @returns undefined if none may start */
  #next(): (() => void) | undefined {
    if (this.#taken >= this.#limits.all) return undefined;
    // A host or principal without room has a POST in flight: no more of them are passed over than there are places.
    for (const [host, places] of this.#waiting) {
      if (!this.#hasRoomAt(places)) continue;
      for (const [principal, lane] of places.waiting) {
        if (!this.#hasRoomFor(principal, lane)) continue;
        const start = lane.waiting.shift();
        this.#count(principal, places, lane, 1);
        places.waiting.delete(principal);
        if (lane.waiting.length > 0) places.waiting.set(principal, lane);
        this.#waiting.delete(host);
        if (places.waiting.size > 0) this.#waiting.set(host, places);
        return start;
      }
    }
    return undefined;
  }

  #hasRoomAt({ taken, most }: Host): boolean {
    return hasRoom(taken, Math.min(most, this.#limits.host), this.#limits.all - this.#taken, LEFT_PER_HOST);
  }

  #hasRoomFor(principal: string, lane: Lane): boolean {
    const { all, principal: most } = this.#limits;
    const taken = this.#principals.get(principal) ?? 0;
    return hasRoom(taken, most, all - this.#taken, LEFT_PER_PRINCIPAL) && hasRoom(lane.taken, most, most - taken, 1);
  }

  #count(principal: string, places: Host, lane: Lane, by: 1 | -1): void {
    this.#taken += by;
    places.taken += by;
    lane.taken += by;
    const taken = (this.#principals.get(principal) ?? 0) + by;
    if (taken === 0) this.#principals.delete(principal);
    else this.#principals.set(principal, taken);
  }
}

/** True for the first one while a place is left; for another one if so many are left for each that is taken. */
function hasRoom(taken: number, most: number, left: number, leftPer: number): boolean {
  return taken < most && left > 0 && (taken === 0 || taken * leftPer < left);
}
