/**
 * The gates around a request, in order: this list is all that happens around a call. A feature fills a stage when a server first
 * uses it; a stage that nothing fills costs nothing.
 */
import type { RequestMail } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { CallToolResult } from '../protocol/types.ts';
import type { Context } from './context.ts';
import type { ToolCall } from './execution.ts';

/** The stages of a request, from the in-flight table that accepts it to its handler. `resolve` and `run` are the core's own. */
export const STAGES = {
  hold: 'waits for the first lists of mounted servers',
  find: 'makes a call of `call_tool` a call of the tool that it names',
  admit: 'asks the authorization rules of the server and of the element',
  found:
    'lets a call by name that may not know its tool go on as a call of `call_tool`, and finds the tools that a page of a mount may name',
  replay: 'sends the stored outcome of a call that was made before, and lets each other call run once',
  middleware: 'runs the functions of the program around the request',
  resolve: 'the registry finds the element',
  resume: 'passes a request that continues an earlier one to that one',
  answer: 'passes the answers of a model to the request that asked for them',
  quarantine: 'rejects a call that has blocked the process before',
  limit: 'counts the call against the limits of its tool',
  record: 'records the start and the end of the call for the audit',
  mode: 'decides whether the call runs as a task',
  approve: 'holds the call until it is approved',
  run: 'the executor runs the handler',
} as const;

export type Stage = Exclude<keyof typeof STAGES, 'resolve' | 'run'>;

/** Passes a request on to the next stage, now or later, or answers it. */
export type RequestGate = (mail: RequestMail, next: (mail: RequestMail) => void) => void;

/** One call of a tool. */
export interface ToolRun {
  readonly request: RequestView;
  readonly call: ToolCall;
}

/**
 * Decides whether the executor runs an element for a request. `again` sends the request to its executor again.
 *
 * @returns false if the gate answers the request, or sends it again
 * @throws {ProtocolError} for a request that must not run
 */
export type RunGate = (request: RequestView, label: string, again: () => void) => boolean;

/** Runs a call of a tool, or answers in its place. @throws {ProtocolError} */
export type CallGate = (run: ToolRun, next: () => CallOutcome) => CallOutcome;
export type CallOutcome = CallToolResult | Promise<CallToolResult>;

/**
 * Runs the handler of a call, or answers in its place. It can ask the client of the call.
 *
 * @param next `first`: the gate knows that no earlier run of the call has reached the handler
 * @throws {ProtocolError}
 */
export type HandlerGate = (call: ToolCall, ctx: Context, next: (run?: 'first') => CallOutcome) => CallOutcome;

/** The kind of gate at each stage. */
interface Gates extends Readonly<Record<Stage, unknown>> {
  hold: RequestGate;
  find: RequestGate;
  admit: RequestGate;
  found: RequestGate;
  replay: RequestGate;
  middleware: RequestGate;
  /** Asked only for a request that has answers, or the state of an earlier one. */
  resume: RunGate;
  answer: RunGate;
  quarantine: RunGate;
  limit: CallGate;
  record: CallGate;
  mode: CallGate;
  approve: HandlerGate;
}

/** The gates of one server. They are put together when a stage is filled, not for each request. */
export class Stages {
  readonly #gates: { readonly [S in Stage]: Gates[S][] } = {
    ...{ hold: [], find: [], admit: [], found: [], replay: [], middleware: [] },
    ...{ resume: [], answer: [], quarantine: [], limit: [], record: [], mode: [], approve: [] },
  };
  /** Passes a request to the actor that serves it. */
  readonly #serve: (mail: RequestMail) => void;
  readonly #failed: (mail: RequestMail, error: unknown) => void;
  #enter: (mail: RequestMail) => void;
  /** The gates around handlers: none of them costs a call nothing. */
  readonly handlers: readonly HandlerGate[] = this.#gates.approve;
  #runs: readonly RunGate[] = [];
  #calls: readonly CallGate[] = [];

  /** @param failed answers a request whose gate has thrown */
  constructor(serve: (mail: RequestMail) => void, failed: (mail: RequestMail, error: unknown) => void) {
    this.#serve = serve;
    this.#failed = failed;
    this.#enter = serve;
  }

  /** Adds a gate to a stage, behind those that are there, unless it is one of them. Requests that have passed the stage go on as they are. */
  fill<S extends Stage>(stage: S, gate: Gates[S]): void {
    const gates: Gates[S][] = this.#gates[stage];
    if (gates.includes(gate)) return;
    gates.push(gate);
    this.#compose();
  }

  /** Removes a gate from a stage. */
  empty<S extends Stage>(stage: S, gate: Gates[S]): void {
    const gates: Gates[S][] = this.#gates[stage];
    const place = gates.indexOf(gate);
    if (place < 0) return;
    gates.splice(place, 1);
    this.#compose();
  }

  #compose(): void {
    const { hold, find, admit, found, replay, middleware, answer, quarantine, limit, record, mode } = this.#gates;
    let enter = this.#serve;
    for (const gate of [...hold, ...find, ...admit, ...found, ...replay, ...middleware].reverse()) {
      const next = enter;
      enter = (mail) => {
        try {
          gate(mail, next);
        } catch (error) {
          this.#failed(mail, error);
        }
      };
    }
    this.#enter = enter;
    this.#runs = [...answer, ...quarantine];
    this.#calls = [...limit, ...record, ...mode];
  }

  /** Sends a request through the stages. A bound function: an in-flight table calls it at the end of a turn. */
  readonly route = (mail: RequestMail): void => this.#enter(mail);

  /** Decides whether an executor runs an element for a request. @throws {ProtocolError} */
  mayRun(request: RequestView, label: string, again: () => void): boolean {
    if (request.continues) for (const gate of this.#gates.resume) if (!gate(request, label, again)) return false;
    for (const gate of this.#runs) if (!gate(request, label, again)) return false;
    return true;
  }

  /** Runs a call of a tool within its gates. */
  call(run: ToolRun, handler: (run: ToolRun) => CallOutcome): CallOutcome {
    const gates = this.#calls;
    if (gates.length === 0) return handler(run);
    const enter = (place: number): CallOutcome => gates[place]?.(run, () => enter(place + 1)) ?? handler(run);
    return enter(0);
  }

  /** Runs the handler of a call within the gates around it, also for a call that is a task or runs again. */
  handle(call: ToolCall, ctx: Context, handler: (run?: 'first') => CallOutcome): CallOutcome {
    const gates = this.handlers;
    const enter = (place: number, run?: 'first'): CallOutcome =>
      gates[place]?.(call, ctx, (known) => enter(place + 1, known ?? run)) ?? handler(run);
    return enter(0);
  }
}
