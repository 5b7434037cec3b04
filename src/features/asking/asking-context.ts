/** The part of a handler's context that asks its client, and records its steps. */

import type { Context } from '../../core/execution/context.ts';
import type { ToolImplementation } from '../../core/execution/execution.ts';
import { type ContextExtension, RequestContext, requestContextOf } from '../../core/execution/request-context.ts';
import type { InputRequest, Reply } from '../../core/messages/client-input.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import { type Asker, type AskerOptions, makeAsking } from './asker.ts';
import type { InteractiveRequests } from './interactive-requests.ts';
import { needsState } from './needs-state.ts';
import { type RequestStorage, stepLabel } from './request-record.ts';
import { copyOf, StepLog } from './step-log.ts';

const STRUCTURED = Object.freeze({ structured: true });
const UNSTRUCTURED = Object.freeze({ structured: false });

/** Describes how to ask the model that calls this tool. */
export function modelFor({ output }: ToolImplementation): AskerOptions['model'] {
  return output === undefined ? UNSTRUCTURED : STRUCTURED;
}

/** The checkpoints of a statechart that runs for a call. */
export interface Checkpoints {
  /** The last checkpoint of an earlier run; undefined if there is none. */
  readonly before: string | undefined;
  /** The call may be continued by another process although it has asked nothing. */
  readonly lasting: boolean;
  /** Returns the durable record of the call; undefined if nothing of this call is persisted. */
  storage(): RequestStorage | undefined;
}

/** Works only for a context of this package: an author's executor may pass its handlers another. */
export function checkpointsOf(ctx: Context): Checkpoints | undefined {
  if (!(ctx instanceof RequestContext)) return undefined;
  const { first } = ctx;
  const lasting = ctx.mode !== 'request';
  if (first.client.session && !lasting) return undefined;
  return {
    before: first.recorded?.checkpoint,
    lasting: lasting || first.recorded?.id !== undefined,
    storage: () => askingOf(ctx).storage(),
  };
}

/**
 * Asks the client questions of another server: method and params unchanged, as far as the client's revision can represent
 * them. They wait, are sealed and persisted as those of `ctx.ask`. If the handler runs again, it must ask the same
 * questions in the same order.
 *
 * @param requests 1 to 32 questions by name
 * @returns the replies by the same names, unchecked. A client of a session may reply with an error
 * @throws {CannotAsk} for a question whose capability the client has not declared; {@link Unanswered} as `ctx.ask`
 * @example const { a: reply } = await askVerbatim(ctx, { a: { method: 'roots/list', params: {} } });
 */
export function askVerbatim(
  ctx: Context,
  requests: Readonly<Record<string, InputRequest>>,
  signal?: AbortSignal,
): Promise<Readonly<Record<string, Reply>>> {
  return askingOf(ctx).ask.verbatim(requests, signal);
}

/** True if another process continues this call, which ends here: what it has begun elsewhere must not be cancelled. */
export function continuesElsewhere(ctx: Context): boolean {
  return askingOf(ctx).continuesElsewhere;
}

/** Extends the deadline of a call that waits for the task of another server, to `limits.maxTimeoutMs`. */
export function waitLonger(ctx: Context): void {
  requestContextOf(ctx).allow(askingOf(ctx).maxTimeoutMs);
}

function askingOf(ctx: Context): AskingContext {
  const { extension } = requestContextOf(ctx);
  if (extension instanceof AskingContext) return extension;
  throw new TypeError('expected the context of a server with the feature "asking"');
}

export class AskingContext implements ContextExtension {
  readonly #context: RequestContext;
  readonly #interactive: InteractiveRequests;
  /** Set if the model that called is asked when the client cannot be. */
  readonly #model: AskerOptions['model'];
  #asking: Asker | undefined;
  #steps: StepLog | undefined;

  /** @param interactive holds the requests that ask, and their durable records */
  constructor(context: RequestContext, interactive: InteractiveRequests, model: AskerOptions['model']) {
    this.#context = context;
    this.#interactive = interactive;
    this.#model = model;
    const { first } = context;
    if (first.recorded?.id !== undefined) interactive.interact(first, context);
  }

  get ask(): Asker {
    if (this.#asking) return this.#asking;
    const { first, implementation } = this.#context;
    // The answer of a person must not be asked for, and then be lost.
    if (implementation && needsState(implementation)) this.#context.state.requireScope();
    this.#asking = makeAsking({
      interactiveRequest: () => this.#interactive.interact(first, this.#context),
      client: () => this.#context.current.client,
      contextDropped: () => this.#interactive.contextDropped(this.#context.current),
      model: this.#model,
    });
    return this.#asking;
  }

  get step(): Context['step'] {
    const { first } = this.#context;
    this.#steps ??= new StepLog({
      remembersFailures: true,
      recorded: first.recorded?.steps,
      storage: this.storage(),
      memory: this.#interactive.memoryOf(first),
      maxLength: this.#interactive.maxStepsLength,
      label: stepLabel,
      copy: copyOf,
    });
    return this.#steps.step;
  }

  steps(): JsonObject | undefined {
    return this.#steps?.recorded();
  }

  get continuesElsewhere(): boolean {
    return this.#interactive.continuesElsewhere(this.#context.first);
  }

  get maxTimeoutMs(): number {
    return this.#interactive.maxTimeoutMs;
  }

  storage(): RequestStorage | undefined {
    return this.#interactive.storageOf(this.#context.first, this.#context);
  }
}
