/** The answers of a person to the questions of an instance, given in a view of it. */

import type { Context } from '../../../core/execution/context.ts';
import { failed } from '../../../core/execution/tool-result.ts';
import { isJsonObject } from '../../../core/protocol/json.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import type { ViewKeys } from '../../apps/view-keys.ts';
import { keyIn, refusedInView } from '../../apps/view-meta.ts';
import { HandleError } from '../handle-error.ts';
import type { Handles } from '../handles.ts';
import { answerRefused, viewData } from './handle-answer.ts';

/** A view identifies its instance by the address of the instance's resource. */
const INSTANCE = /^troupe:\/\/([^/]+)\/([^/]+)$/;

/** The handle, or the key, in an address. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The handler of `troupe_answer` for views. */
export async function answerInView(
  { id, answers }: { readonly id: string; readonly answers: unknown },
  ctx: Context,
  handles: Pick<Handles, 'answer'>,
  keys: ViewKeys,
): Promise<CallToolResult> {
  const [, name, handle] = INSTANCE.exec(id) ?? [];
  // A model must not answer for its user: only a view of this instance and of this user has the key.
  if (name === undefined || handle === undefined || !keys.open(keyIn(ctx.meta), ctx.principal, id))
    return refusedInView(
      failed(
        'This answer has no valid key of a view of this instance. Only the user answers, in the view: ask the user to open it again.',
      ),
      'key',
    );
  const given = isJsonObject(answers) ? answers : {};
  try {
    const result = await handles.answer(name, decoded(handle), given, {
      principal: ctx.principal,
      ctx: undefined,
      auth: ctx.auth,
      inView: true,
    });
    if (!('handle' in result)) return refusedInView(failed(result.join('\n')), 'invalid');
    return { content: [{ type: 'text', text: 'answered' }], structuredContent: viewData(result) };
  } catch (error) {
    const refused = answerRefused(error, { name, callOf: (event) => `${name}_${event}` }, ctx.meta);
    return error instanceof HandleError ? refusedInView(refused, error.reason) : refused;
  }
}
