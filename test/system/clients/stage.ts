/** What the parts of the scenario share: the client, the revision, and how to look into a result. */
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import type { Suite } from '../../harness/door.ts';
import type { Loose, OfficialClient } from './official.ts';

export interface Stage<C extends OfficialClient = OfficialClient> {
  readonly test: Suite;
  readonly modern: boolean;
  /** The client cancels a call by closing its response (2026-07-28 streamable-http "Cancellation"), and sends no message. */
  readonly cancelsByClosing: boolean;
  client(): C;
  /** True from the revision that brought something on. */
  since(revision: Revision): boolean;
  call(name: string, args?: Record<string, unknown>): Promise<Loose>;
  /** The error that a request is answered with, as it is on the wire: the client of version 2 turns some into others. */
  refusal(request: Promise<unknown>): Promise<Loose>;
}

export function contentOf(result: Loose): readonly unknown[] {
  if (!Array.isArray(result.content)) throw new Error(`expected content, got ${JSON.stringify(result)}`);
  return result.content;
}

export function contentsOf(result: Loose): readonly unknown[] {
  if (!Array.isArray(result.contents)) throw new Error(`expected contents, got ${JSON.stringify(result)}`);
  return result.contents;
}

/** The text of a result that is one text. */
export function textOf(result: Loose): string {
  const [only, ...more] = contentOf(result);
  const { text } = Object(only);
  if (more.length > 0 || typeof text !== 'string') throw new Error(`expected one text, got ${JSON.stringify(result)}`);
  return text;
}
