/** Remembers which element's code is running, and for which request, across awaits and timers, so that what it throws too late can be named, and what blocks the loop too. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ActiveRequest } from '../messages/active-request.ts';

/** Something that runs for an element, such as `tool "echo"`. */
export interface Labelled {
  readonly label: string;
}

/** One run of an element. */
export interface RunningElement extends Labelled {
  /** Undefined once it is answered: what a handler leaves behind must not keep its request and client in memory. */
  request: ActiveRequest | undefined;
}

export const running: AsyncLocalStorage<RunningElement> = new AsyncLocalStorage<RunningElement>();
