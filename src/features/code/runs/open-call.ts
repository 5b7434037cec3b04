/** A call of a script without an end: its identity, its attempts, and the reason of its wait. */
import { isoOf, type Timer } from '../../../core/kernel/clock.ts';
import { nameOfQuestion } from '../../../core/kernel/inspection/display-names.ts';
import type { Waits } from '../../../core/kernel/inspection/records.ts';
import { sha256 } from '../../../core/kernel/sha256.ts';
import type { InputRequest } from '../../../core/messages/client-input.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import { isObject, shortened } from '../../../core/protocol/json.ts';
import { META } from '../../../core/protocol/meta.ts';
import type { Operation } from '../../../core/protocol/operations.ts';
import type { ScriptCall, ScriptFault } from '../sandbox/script.ts';
import type { CallValue } from './call-value.ts';
import type { InnerCall } from './inner-call.ts';
import type { CallIdentity } from './run-journal.ts';
import type { Attachment } from './run-messages.ts';
import type { EndedCall } from './run-result.ts';

/** A call of the script without an end. */
export interface OpenCall extends CallIdentity {
  readonly call: ScriptCall;
  /** `group.function`, without `.raw`; or the name of a helper. */
  readonly of: string;
  readonly raw: boolean;
  readonly operation: Operation | undefined;
  readonly effect: boolean;
  readonly repeatable: boolean;
  /** Its tool runs only as a task. */
  readonly asTask: boolean;
  status: 'queued' | 'unsigned' | 'storing' | 'running' | 'asked' | 'held' | 'following' | 'sleeping';
  attempt: number;
  /** The number of times that its function could not be listed. */
  unlisted: number;
  /** The attempts whose handlers may run. */
  readonly inner: InnerCall[];
  round: number;
  requests: Readonly<Record<string, InputRequest>>;
  requestState: string | undefined;
  /** The request whose client is asked. */
  askedBy: Attachment | undefined;
  approval: string | undefined;
  /** The task that it has become, and milliseconds between two looks at it. */
  task: string | undefined;
  pollMs: number;
  /** The reason of its wait, in words. */
  text: string;
  due: number | undefined;
  timer: Timer | undefined;
  waiting: AbortController | undefined;
}

/** @param pollMs milliseconds between two looks at a task */
export function openCall(call: ScriptCall, pollMs: number): OpenCall {
  const { name } = call;
  const raw = name.endsWith('.raw') && name.split('.').length > 2;
  const of = raw ? name.slice(0, -'.raw'.length) : name;
  return {
    ...{ call, name, digest: digestOfArguments(call), of, raw, operation: undefined, effect: false, repeatable: true },
    ...{
      asTask: false,
      status: 'queued',
      attempt: 0,
      unlisted: 0,
      inner: [],
      round: 0,
      requests: {},
      requestState: undefined,
    },
    ...{ askedBy: undefined, approval: undefined, task: undefined, pollMs },
    ...{ text: '', due: undefined, timer: undefined, waiting: undefined },
  };
}

export function digestOfArguments({ arguments: args }: ScriptCall): string {
  return sha256(args);
}

export function endedOf({ call, of, effect }: OpenCall, given: CallValue): EndedCall {
  return { number: call.number, name: of, effect, fault: 'error' in given ? given.error : undefined };
}

export function unknownOutcome(of: string): ScriptFault {
  return {
    message: `the server restarted during the call of ${of}, and it is not known whether it was carried out. Find out before you call it again`,
    ...{ tool: of, carriedOut: 'unknown' },
  };
}

/** The reason of its wait, for a model. */
export function reasonOfWait({ call, of, status, due, text }: OpenCall): string {
  switch (status) {
    case 'sleeping':
      return `it sleeps until ${isoOf(due ?? 0)}`;
    case 'held':
      return `call ${call.number} of ${of} waits for ${shortened(text, 600)}`;
    case 'asked':
      return `call ${call.number} of ${of} waits for an answer of the user, which this client cannot ask`;
    case 'following':
      return `call ${call.number} of ${of} is a task${text === '' ? '' : `: ${shortened(text, 200)}`}`;
    case 'unsigned':
      return `call ${call.number} of ${of} waits for a new sign-in`;
    default:
      return `call ${call.number} of ${of} is running`;
  }
}

/** The same, for the inspector. @param addressee the client that is asked. @param epoch milliseconds since 1970 at the start of the clock */
export function waitsOfCall(
  open: OpenCall,
  addressee: (request: InputRequest) => string,
  epoch: number,
): readonly Waits[] {
  const { call, of, status, requests, approval, task, due, askedBy } = open;
  const which = `${of} (call ${call.number})`;
  switch (status) {
    case 'asked':
      return Object.values(requests).map((request) => ({
        what: nameOfQuestion(request),
        whom: `${askedBy ? addressee(request) : 'the client that continues the run'}, for ${which}`,
      }));
    case 'held':
      return [{ what: `the approval ${approval} of ${which}` }];
    case 'following':
      return [{ what: `the task ${task} of ${which}` }];
    case 'sleeping':
      return [{ what: `the end of ${which}`, until: due === undefined ? undefined : due - epoch }];
    case 'unsigned':
      return [{ what: `a new sign-in, for ${which}` }];
    default:
      return [{ what: `the result of ${which}` }];
  }
}

/** The approval for which a call waits, or which was refused. */
export function approvalIn(
  outcome: Outcome,
): { readonly id: string; readonly state: string; readonly text: string } | undefined {
  if (!outcome.ok || outcome.result.kind !== 'call' || outcome.result.result.isError !== true) return undefined;
  const { _meta: meta, content } = outcome.result.result;
  const approval = isObject(meta) ? meta[META.approval] : undefined;
  if (!isObject(approval) || typeof approval.id !== 'string' || typeof approval.state !== 'string') return undefined;
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
  // The text of the result advises a model that has made the call itself.
  const { waits } = approval;
  return { id: approval.id, state: approval.state, text: typeof waits === 'string' ? waits : text };
}
