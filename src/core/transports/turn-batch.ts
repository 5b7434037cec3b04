/**
 * Distributes messages over the turns of the event loop: all small requests of a turn together, large messages one at a
 * time. Code that runs again at once finds its data in the processor's caches, and a client with several requests in
 * flight wakes once for their responses. This halves the cost of a busy server; an idle one responds a few microseconds
 * later. A large message occupies the thread for 10 to 100 ms, so small messages pass between two large ones.
 */
import { systemClock } from '../kernel/clock.ts';

/** Length above which a message is large, in bytes or characters. */
export const LARGE_LENGTH = 262_144;

/** A request that has arrived completely. */
export interface CompleteRequest {
  /** True if it must be served with {@link serveAlone}. */
  readonly large?: boolean;
  /** Processes the request. Must not throw; if it does, the other requests are served in the next turn. */
  serve(): void;
}

/** Global, because the event loop is global to the process. */
let cohort: CompleteRequest[] = [];
/** Large messages that wait for their turns. Their transports limit their number and hold their bytes anyway. */
const large: CompleteRequest[] = [];
/** A large message was processed in this turn, or others wait. */
let occupied = false;

/**
 * Serves a request after this turn of the event loop has read all available input. Large requests are served after the
 * small ones of their turn.
 */
export function serveAtEndOfTurn(complete: CompleteRequest): void {
  cohort.push(complete);
  if (cohort.length === 1) systemClock.soon(serveAll);
}

/** Serves a large message now, or in a later turn if this turn has served another one. Large messages keep their order. */
export function serveAlone(complete: CompleteRequest): void {
  if (occupied) {
    large.push(complete);
    return;
  }
  occupied = true;
  systemClock.soon(serveNext);
  complete.serve();
}

function serveNext(): void {
  const next = large.shift();
  occupied = next !== undefined;
  if (!next) return;
  systemClock.soon(serveNext);
  try {
    // The small requests that arrived while the last large message was processed go first.
    if (cohort.length > 0) serveAll();
  } finally {
    next.serve();
  }
}

function serveAll(): void {
  const members = cohort;
  cohort = [];
  let waiting: CompleteRequest[] | undefined;
  let served = 0;
  try {
    for (const member of members) {
      served += 1;
      if (member.large) {
        waiting ??= [];
        waiting.push(member);
      } else member.serve();
    }
  } finally {
    for (const member of members.slice(served)) serveAtEndOfTurn(member);
    for (const member of waiting ?? []) serveAlone(member);
  }
}
