/** Remembers which element's code is running, across awaits and timers, so that what it throws too late can be named. */
import { AsyncLocalStorage } from 'node:async_hooks';

/** Something that runs for an element, such as `tool "echo"`. */
export interface Labelled {
  readonly label: string;
}

export const running: AsyncLocalStorage<Labelled> = new AsyncLocalStorage<Labelled>();
