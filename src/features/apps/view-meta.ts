/** The names that views and this server exchange in `_meta` and as tools. docs/apps.md documents them. */
import { isObject } from '../../core/protocol/json.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';

/** The member of `_meta` with the key of a view: in the result that opens the view, and in the view's calls. */
export const VIEW_META = 'dev.troupe/view';

/**
 * Adds the reason of a failed call for a view, which has sentences of its own: the text of the result is for a model.
 *
 * @param reason a member of `HandleFault`, or `replaced`, `full`, `invalid`, `key`
 */
export function refusedInView(result: CallToolResult, reason: string): CallToolResult {
  return { ...result, _meta: { ...result._meta, [VIEW_META]: { reason } } };
}

/** The key in the `_meta` of a request; undefined if it has none. */
export function keyIn(meta: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const view = meta?.[VIEW_META];
  const key = isObject(view) ? view.key : undefined;
  return typeof key === 'string' ? key : undefined;
}
