/** Records the calls of tools: the end of each, and, if the audit is required, first its start. */

import type { CallGate } from '../../../core/execution/stages.ts';
import { incidentOf } from '../../../core/execution/tool-result.ts';
import { type Clock, within } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { randomId } from '../../../core/kernel/random-id.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { ErrorCode, isProtocolError, NOT_RECORDED, ProtocolError } from '../../../core/protocol/errors.ts';
import { isJsonObject, isObject, isThenable, type JsonValue, messageOf } from '../../../core/protocol/json.ts';
import { ANSWER_TOOL, answeredInstance } from '../../../core/protocol/views.ts';
import type { StateKeys } from '../../../core/store/state-keys.ts';
import type { AuditedCall, AuditMail } from './audit-messages.ts';
import type { AuditOptions } from './audit-options.ts';
import type { AuditEvent } from './audit-record.ts';

interface AuditedCallsOptions extends Pick<AuditOptions, 'include' | 'redact'> {
  readonly log: Mailbox<AuditMail>;
  readonly clock: Clock;
  readonly keys: StateKeys;
  readonly events: ReadonlySet<AuditEvent>;
  readonly required: boolean;
  /** Reports an error of `redact`. */
  incident(where: string, error: unknown): string;
}

/** Milliseconds in which the record of a call's start must be stored. */
const KEEP_MS = 5_000;
/** Length of the name that joins the two records of a call. */
const NAME_LENGTH = 12;

/** A call whose start is recorded, or is about to be. */
interface StartedCall {
  call: AuditedCall;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Undefined once the record is stored. Rejects with the error for the client. */
  recorded: Promise<void> | undefined;
}

export class AuditedCalls {
  readonly #options: AuditedCallsOptions;
  readonly #started = new WeakMap<RequestView, StartedCall>();

  constructor(options: AuditedCallsOptions) {
    this.#options = options;
  }

  /**
   * Records the start of a call together with the writes of this turn, such as its marker in the store, so that the call
   * needs no further sync.
   *
   * @param tool its definition; undefined if there is none
   */
  announce(request: RequestView, tool: unknown): void {
    const { operation } = request;
    if (operation.method !== 'tools/call' || tool === undefined) return;
    // The call that it continues is recorded.
    if (operation.name === ANSWER_TOOL && answeredInstance(operation.arguments) === undefined) return;
    if (this.#mustStart(tool)) this.#start(request, operation.name, operation.arguments);
  }

  /** Ends an announced call that does not run. */
  readonly notRun = (request: RequestView): void => {
    const started = this.#started.get(request);
    if (started) this.#options.log.send({ type: 'call ended', call: started.call, event: 'call', outcome: 'not run' });
  };

  /** Runs a call and records its end; see {@link AuditedCalls.run}. */
  readonly gate: CallGate = ({ request, call }, next) => this.run(request, call.tool, call.arguments, next);

  /**
   * Runs a call and records its end.
   *
   * @throws {ProtocolError} -32603 if the record of its start is required and cannot be stored: the call has not run
   */
  run<R>(
    request: RequestView,
    tool: { readonly name: string; readonly annotations?: unknown },
    args: Readonly<Record<string, unknown>>,
    work: () => R | Promise<R>,
  ): R | Promise<R> {
    const event = readsOnly(tool) ? 'read' : 'call';
    if (!this.#mustStart(tool)) {
      if (!this.#options.events.has(event)) return work();
      return this.#observe(this.#callOf(request, tool.name, args), event, work);
    }
    const started = this.#started.get(request) ?? this.#start(request, tool.name, args);
    // A middleware has changed them since: the end records what the handler receives.
    if (started.arguments !== args)
      started.call = { ...this.#callOf(request, tool.name, args), call: started.call.call };
    if (!started.recorded) return this.#observe(started.call, event, work);
    return started.recorded.then(
      () => this.#observe(started.call, event, work),
      (error: unknown) => {
        this.notRun(request);
        throw error;
      },
    );
  }

  #mustStart(tool: unknown): boolean {
    return this.#options.required && !readsOnly(tool);
  }

  #start(request: RequestView, tool: string, args: Readonly<Record<string, unknown>>): StartedCall {
    const { log, clock } = this.#options;
    const call = { ...this.#callOf(request, tool, args), call: randomId(NAME_LENGTH) };
    const started: StartedCall = { call, arguments: args, recorded: undefined };
    const answered = new Promise<void>((resolve, reject) => {
      log.send({
        type: 'call started',
        call,
        stored: {
          address: 'call',
          send({ error }) {
            if (error !== undefined) return reject(notRecorded(error));
            started.recorded = undefined;
            resolve();
          },
        },
      });
    });
    const recorded = within(answered, clock, KEEP_MS, () =>
      notRecorded(new Error(`no answer within ${durationOf(KEEP_MS)}`)),
    );
    // An announced call may end before anything waits for its record.
    recorded.catch(() => {});
    started.recorded = recorded;
    this.#started.set(request, started);
    return started;
  }

  #observe<R>(call: AuditedCall, event: 'call' | 'read', work: () => R | Promise<R>): R | Promise<R> {
    const { log, clock } = this.#options;
    const at = clock.now();
    const ended = (outcome: 'ok' | 'error', errorType?: string, incident?: string): void =>
      log.send({ type: 'call ended', call, event, outcome, errorType, incident, ms: Math.round(clock.now() - at) });
    const failed = (error: unknown): never => {
      ended('error', String(isProtocolError(error) ? error.code : ErrorCode.InternalError));
      throw error;
    };
    const returned = (result: R): R => {
      if (isObject(result) && result.isError === true) ended('error', 'tool_error', incidentOf(result));
      else ended('ok');
      return result;
    };
    let result: R | Promise<R>;
    try {
      result = work();
    } catch (error) {
      return failed(error);
    }
    return isThenable(result) ? Promise.resolve(result).then(returned, failed) : returned(result as R);
  }

  #callOf(request: RequestView, tool: string, args: Readonly<Record<string, unknown>>): AuditedCall {
    const given = isJsonObject(args) ? args : {};
    const recorded = this.#redacted(tool, given);
    return {
      by: request.client,
      request,
      // The socket forgets it when the client disconnects.
      remoteAddress: request.exchange?.incoming.remoteAddress,
      element: `tool ${tool}`,
      argumentsDigest: this.#options.keys.ring.fingerprint(given),
      ...(recorded === undefined ? {} : { arguments: recorded }),
    };
  }

  #redacted(tool: string, args: Parameters<NonNullable<AuditOptions['redact']>>[0]): JsonValue | undefined {
    const { include, redact } = this.#options;
    if (!redact || !include?.includes('arguments')) return undefined;
    try {
      return redact(args, tool);
    } catch (error) {
      this.#options.incident('audit.redact', error);
      return undefined;
    }
  }
}

function readsOnly(tool: unknown): boolean {
  return isObject(tool) && isObject(tool.annotations) && tool.annotations.readOnlyHint === true;
}

function notRecorded(cause: unknown): ProtocolError {
  const error = new ProtocolError(
    ErrorCode.InternalError,
    'the call did not run, because the audit log of this server could not keep its record. Retry later, or ask the operator to check the audit log',
    NOT_RECORDED,
  );
  error.cause = messageOf(cause);
  return error;
}
