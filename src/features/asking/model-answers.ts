/** The calls that wait for an answer from the model that made them. Each has an id that is valid once, for its caller. */

import { failed } from '../../core/execution/tool-result.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Ids } from '../../core/kernel/ids.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { ANSWER_TOOL, answeredInstance } from '../../core/protocol/views.ts';
import { respond } from '../../core/requests/active-request.ts';
import type { InteractiveRequestMail } from './input-messages.ts';
import { type AskedThroughModel, fromModel, toModel } from './model-fallback.ts';

interface WaitingCall {
  readonly interactiveRequest: Mailbox<InteractiveRequestMail>;
  readonly questions: readonly AskedThroughModel[];
  readonly principal: string;
  /** The session that received the id, if the principal is anonymous. */
  readonly session: string | undefined;
  /** The scopes that its call needed. */
  readonly needed: readonly string[];
}

export class ModelAnswers {
  readonly #askMs: number;
  readonly #idsOf: Pick<Ids, 'within'>;
  readonly #waiting = new Map<string, WaitingCall>();
  /** The id of each waiting interactive request. */
  readonly #ids = new Map<Mailbox<InteractiveRequestMail>, string>();

  constructor(askMs: number, ids: Pick<Ids, 'within'>) {
    this.#askMs = askMs;
    this.#idsOf = ids;
  }

  /**
   * Makes an interactive request wait for the model of its request's client.
   *
   * @returns the result that asks the model
   */
  ask(
    interactiveRequest: Mailbox<InteractiveRequestMail>,
    questions: readonly AskedThroughModel[],
    { client, exchange, needed }: RequestView,
  ): CallToolResult {
    const id = this.#idsOf.within(client.session?.id, exchange?.cell);
    this.#waiting.set(id, { interactiveRequest, questions, needed, ...boundTo(client) });
    this.#ids.set(interactiveRequest, id);
    return toModel(questions, id, this.#askMs);
  }

  /** Removes the id; the request no longer waits. */
  forget(interactiveRequest: Mailbox<InteractiveRequestMail>): void {
    const id = this.#ids.get(interactiveRequest);
    if (id === undefined) return;
    this.#ids.delete(interactiveRequest);
    this.#waiting.delete(id);
  }

  /**
   * Handles a call of the answer tool.
   *
   * @returns false for any other request
   */
  takes(request: RequestView): boolean {
    const { operation } = request;
    if (operation.method !== 'tools/call' || operation.name !== ANSWER_TOOL) return false;
    if (answeredInstance(operation.arguments) !== undefined) return false;
    const refusal = this.#answer(request, operation.arguments);
    if (refusal !== undefined) {
      const outcome = { ok: true, result: { kind: 'call', result: failed(refusal) } } as const;
      respond(request, outcome);
    }
    return true;
  }

  /** The scopes that a call of the answer tool needs, because the call needed them that it continues. */
  neededFor({ operation, client }: RequestView): readonly string[] {
    if (operation.method !== 'tools/call' || operation.name !== ANSWER_TOOL) return NONE;
    return this.#find(client, operation.arguments)?.needed ?? NONE;
  }

  #find(client: ClientFacts, { id }: Readonly<Record<string, unknown>>): WaitingCall | undefined {
    const waiting = typeof id === 'string' ? this.#waiting.get(id) : undefined;
    const { principal, session } = boundTo(client);
    return waiting?.principal === principal && waiting.session === session ? waiting : undefined;
  }

  /** @returns an explanation for the model if no request continues */
  #answer(request: RequestView, args: Readonly<Record<string, unknown>>): string | undefined {
    const waiting = this.#find(request.client, args);
    if (!waiting)
      return `No call waits for an answer with this id. It was already answered, its ${durationOf(this.#askMs)} have passed, or the id is wrong. Check the id; otherwise call the first tool again.`;
    const read = fromModel(args.answers, waiting.questions);
    if (!read.ok)
      return [
        'These answers do not match the questions:',
        ...read.problems.map((problem) => `- ${problem}`),
        'The call is still waiting. Call this tool again with the same id.',
      ].join('\n');
    const { interactiveRequest } = waiting;
    this.forget(interactiveRequest);
    interactiveRequest.send({ type: 'resumed', request, responses: {} });
    for (const [key, reply] of read.replies) interactiveRequest.send({ type: 'replied', key, reply });
    return undefined;
  }
}

const NONE: readonly string[] = [];

function boundTo({ principal, session }: ClientFacts): Pick<WaitingCall, 'principal' | 'session'> {
  return { principal, session: principal === ANONYMOUS ? session?.id : undefined };
}
