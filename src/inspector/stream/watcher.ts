/** A consumer of the observation: a viewer, or a recording. */
export interface Watcher {
  /** The actors in focus: their views are sent on every change, and each of their steps has its context. */
  readonly focus: ReadonlySet<string>;
  /** True: every step has its context. */
  readonly everything: boolean;
  /** The backlog has new frames. */
  deliver(): void;
  /** The view of an actor in {@link focus} has changed. @param text the frame */
  viewChanged(actor: string, text: string): void;
}
