/** The caller of a run, as its calls have it: the client of the request that waits, or what is stored of it. */
import { type CallOwner, ownerOfCall, requestContextOf } from '../../../core/execution/request-context.ts';
import { type Auth, restoredAuth } from '../../../core/messages/auth.ts';
import type { ClientFacts } from '../../../core/messages/client-facts.ts';
import { DIALECTS } from '../../../core/protocol/dialects/index.ts';
import { isObject } from '../../../core/protocol/json.ts';
import { LATEST_MODERN } from '../../../core/protocol/revisions.ts';
import { TASKS_EXTENSION } from '../../../core/protocol/task-params.ts';
import type { ClientCapabilities } from '../../../core/protocol/types.ts';
import type { StoredCaller } from './run-journal.ts';
import type { Attachment } from './run-messages.ts';

/**
 * The client on whose behalf calls are made, without a session. While no request waits, it is the one that began the run: a question
 * waits until it returns.
 */
export function callingClient(
  caller: StoredCaller,
  attachment: Attachment | undefined,
  takesTasks: boolean,
): ClientFacts {
  const given = attachment && requestContextOf(attachment.ctx).current;
  const declared = withoutTasks(given?.batch ? {} : (given?.client ?? caller).capabilities);
  const { extensions } = declared;
  return {
    dialect: DIALECTS[LATEST_MODERN],
    info: given?.client.info,
    capabilities: takesTasks ? { ...declared, extensions: { ...extensions, [TASKS_EXTENSION]: {} } } : declared,
    logLevel: undefined,
    principal: caller.principal,
    session: undefined,
  };
}

/** The owner of connections to mounted servers: that of the calls that the client makes itself. */
export function callingOwner(
  { principal }: StoredCaller,
  attachment: Attachment | undefined,
): Pick<CallOwner, 'key' | 'several'> {
  return attachment ? ownerOfCall(attachment.ctx) : { key: `principal/${principal}`, several: true };
}

/** The sign-in of the request that waits, or the stored one, which has no token. */
export function callingAuth({ auth }: StoredCaller, attachment: Attachment | undefined): Auth | undefined {
  if (attachment) return requestContextOf(attachment.ctx).current.auth;
  return auth && restoredAuth(auth);
}

/** A call of a script returns its result; its task is the run. */
function withoutTasks(capabilities: ClientCapabilities): ClientCapabilities {
  const { extensions } = capabilities;
  if (!isObject(extensions) || !Object.hasOwn(extensions, TASKS_EXTENSION)) return capabilities;
  const { [TASKS_EXTENSION]: _, ...others } = extensions;
  return { ...capabilities, extensions: others };
}
