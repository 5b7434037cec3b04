/** Decides what a client receives of an error that a handler threw; logs and records the error with its stack. */

import type { ActorSystem } from '../kernel/actor-system.ts';
import { ErrorCode, isForClient, toWireError, type WireError, wireError } from '../protocol/errors.ts';
import { messageOf } from '../protocol/json.ts';
import { Unanswered } from './input-errors.ts';

/** The error of a tool's handler, for its client and for the operator. */
export interface ThrownError {
  /** The text for the model. */
  readonly text: string;
  /** Its id in the log; undefined for an error that is no fault of the handler. */
  readonly incident: string | undefined;
}

export class HandlerErrors {
  readonly #system: ActorSystem;
  readonly #errors: 'message' | 'masked' | undefined;

  /** @param errors the option of the server; undefined: clients receive the messages of tools only */
  constructor(system: ActorSystem, errors: 'message' | 'masked' | undefined) {
    this.#system = system;
    this.#errors = errors;
  }

  /** Records the error of a call. @param signal the signal of the call */
  readonly ofTool = (label: string, error: unknown, signal: AbortSignal): ThrownError => {
    const incident = this.#record('executor/tools', label, error, signal);
    return { text: this.#textOf(error, incident), incident };
  };

  #textOf(error: unknown, incident: string | undefined): string {
    if (this.#errors !== 'masked' || isAnswer(error)) return messageWithCause(error);
    if (incident === undefined) return 'The call was aborted.';
    return `The tool failed (incident ${incident}; the server's log has the details)`;
  }

  /** Returns the error for a request that has failed. @param address the executor @param label the element that it ran */
  ofRequest(address: string, label: string, error: unknown, signal: AbortSignal): WireError {
    const incident = this.#record(address, label, error, signal);
    if (this.#errors === 'message' && !isForClient(error))
      return wireError(ErrorCode.InternalError, messageWithCause(error));
    return toWireError(error, incident ?? 'none');
  }

  /** @returns the id in the log; undefined for an error that is no fault of the handler */
  #record(actor: string, element: string, error: unknown, signal: AbortSignal): string | undefined {
    const { inspection, incident } = this.#system;
    const id = isAnswer(error) || isAbort(error, signal) ? undefined : incident(element, error);
    if (inspection.on) inspection.record({ type: 'failed', actor, element, error, incident: id });
    return id;
  }
}

/** True for an error whose message was written for the client. */
function isAnswer(error: unknown): boolean {
  return isForClient(error) || isInstance(error, Unanswered);
}

/** True for an error that a handler throws because its request has ended: no client receives it. */
function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || (isInstance(error, Error) && error.name === 'AbortError'));
}

/** The message of an error. That of `fetch` says nothing without its cause. Never throws. */
function messageWithCause(error: unknown): string {
  const message = messageOf(error);
  if (message !== 'fetch failed' || !isInstance(error, TypeError)) return message;
  const { cause } = error;
  // Of several addresses, the error of each: their common error has a code and no message.
  const reason = isInstance(cause, AggregateError) && 'code' in cause ? String(cause.code) : messageOf(cause);
  return cause === undefined || reason === '' ? message : `${message}: ${reason}`;
}

/** `instanceof` that never throws: a handler may throw a Proxy whose traps throw. */
export function isInstance<T>(thrown: unknown, type: abstract new (...given: never[]) => T): thrown is T {
  try {
    return thrown instanceof type;
  } catch {
    return false;
  }
}
