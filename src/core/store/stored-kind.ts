/** Recognizes the kind of an actor in a row of a database. */
import type { StoredKind } from './store.ts';

const KINDS: Readonly<Record<StoredKind, true>> = {
  handle: true,
  session: true,
  task: true,
  question: true,
  state: true,
  approval: true,
  grant: true,
  run: true,
  topic: true,
  schedule: true,
  hook: true,
  webhook: true,
  server: true,
};

export function isStoredKind(text: string): text is StoredKind {
  return Object.hasOwn(KINDS, text);
}
