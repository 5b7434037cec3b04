/** What a simulated world asks of its clients, however they are connected. */

import type { Server } from '../../../src/index.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';
import type { Book, Happening, KnownTask } from './book.ts';
import type { HandleBook } from './handles.ts';
import type { Act } from './plan.ts';

/** What a client knows of its world. */
export interface Around {
  readonly clock: SimulatedClock;
  readonly book: Book;
  readonly handles: HandleBook;
  readonly limits: { readonly maxInFlight: number; readonly maxListens: number; readonly taskTtlMs: number };
  /** Whether something was wrong with the disk since then. */
  faultySince(time: number): boolean;
  /** The number of the process that serves now. */
  generation(): number;
  /** One more of these has happened. */
  count(what: Happening): void;
  trace(line: string): void;
  violated(what: string): void;
}

export interface Player {
  readonly connected: boolean;
  /** The server is gone, and nobody has said so. */
  lose(): void;
  /** Does what the plan says, if it can. */
  act(act: Extract<Act, { readonly client: number }>, tasks: readonly KnownTask[]): void;
  resume(): void;
  /** Nothing more is wrong, and whatever is open is to come to its end: answers what it is asked, and looks at its tasks. */
  goOn(tasks: readonly KnownTask[]): void;
  /** What is owed to it still. */
  owed(): readonly string[];
  /** Looks at each of its tasks once more. */
  lookAt(tasks: readonly KnownTask[]): void;
  reaches(task: KnownTask): boolean;
  /** What it watches, and has not been told of since {@link unhear}. */
  unheard(uri: string): readonly string[];
  unhear(): void;
  /** Most that may be in flight at once (I5). */
  checkBounds(): void;
}

/** How a client over HTTP reaches the process that serves. */
export type Fetch = Server['fetch'];
