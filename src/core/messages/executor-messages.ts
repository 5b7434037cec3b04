/** The mailbox of an executor: implementations to store, and calls to run. Types only. */
import type { RequestView } from './request-view.ts';

export type ExecutorMail<Implementation, Target> =
  | { readonly type: 'attach'; readonly ref: number; readonly implementation: Implementation }
  | { readonly type: 'detach'; readonly ref: number }
  /** Run the implementation `ref` for this request; `target` is what the registry resolved. */
  | { readonly type: 'execute'; readonly request: RequestView; readonly ref: number; readonly target: Target };
