/**
 * Tracks which element's code is running, and for which request, across awaits and timers. Late exceptions and blocked
 * event loops can then be attributed.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { RequestView } from '../messages/request-view.ts';

/** Code of an element, such as `tool "echo"`. */
export interface Labelled {
  readonly label: string;
}

/** One run of an element. */
export interface RunningElement extends Labelled {
  /** Undefined after the response: code that a handler leaves behind must not retain its request and client. */
  request: RequestView | undefined;
}

export const running: AsyncLocalStorage<RunningElement> = new AsyncLocalStorage<RunningElement>();
