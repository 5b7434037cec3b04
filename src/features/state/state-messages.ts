/** The messages to a scope, and what its operations are. Types only. */
import type { Stored } from '../../core/store/store.ts';
import type { ScopeDocument } from './scope-document.ts';

/** The principal or session that owns the values of a scope. */
export interface ScopeOwner {
  /** The actor in the store. */
  readonly id: string;
  readonly kind: 'principal' | 'session';
  readonly principal: string;
  /** The id of its session; undefined for the scope of a principal. */
  readonly session: string | undefined;
}

/** One operation, of which a promise waits for the result. */
export interface StateOperation {
  /** Bytes that it holds while it waits. */
  readonly bytes: number;
  /** Runs it. It may run again after the changes of another node. @throws {StateError | unknown} then it has changed nothing */
  run(document: ScopeDocument, now: number): void;
  /** True if it deletes everything, so that damaged data is no obstacle. */
  readonly clears?: true;
  resolve(): void;
  reject(error: unknown): void;
}

export type ScopeMail =
  | { readonly type: 'operate'; readonly operation: StateOperation }
  | { readonly type: 'loaded'; readonly stored: Stored | undefined }
  /** The limit that a new scope would exceed, or undefined. */
  | { readonly type: 'counted'; readonly excess: string | undefined }
  | { readonly type: 'swapped'; readonly stored: boolean }
  | { readonly type: 'failed'; readonly error: unknown }
  | { readonly type: 'again' }
  | { readonly type: 'rest' };
