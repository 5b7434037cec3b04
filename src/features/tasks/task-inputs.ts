/** The input requests of one task. Their keys are never reused. If a session waits for the end of the task, they are also sent to it. */
import { addresseeOf, nameOfQuestion } from '../../core/kernel/inspection/display-names.ts';
import type { Waits } from '../../core/kernel/inspection/records.ts';
import type { InputRequest, RepliedMail } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { AskMail } from '../../core/messages/session-messages.ts';
import { isObject } from '../../core/protocol/json.ts';
import { META } from '../../core/protocol/meta.ts';
import type { QuestionsSnapshot } from './task-snapshot.ts';

/** An open question. */
interface Asked {
  /** Its name in the interactive request. A repeated question keeps its name. */
  readonly name: string;
  request: InputRequest;
  /** Its handler has ended and has not asked it again. */
  left: boolean;
  /** The request to a session, sent for one of the requests that wait for the end. */
  ask: AskMail | undefined;
}

export class TaskInputs {
  readonly #taskId: string;
  /** The task, which gets the replies of sessions. */
  from: Mailbox<RepliedMail> | undefined;
  readonly #open = new Map<string, Asked>();
  /** All keys ever used. */
  readonly #keys: Set<string>;

  /** @param was the questions of a restored task */
  constructor(taskId: string, was?: QuestionsSnapshot) {
    this.#taskId = taskId;
    this.#keys = new Set(was?.keys);
    for (const { key, name, request } of was?.open ?? [])
      this.#open.set(key, { name, request, left: true, ask: undefined });
  }

  snapshot(): QuestionsSnapshot {
    return { open: [...this.#open].map(([key, { name, request }]) => ({ key, name, request })), keys: [...this.#keys] };
  }

  get size(): number {
    return this.#open.size;
  }

  /** Lists the questions for the inspector. Any client that may read the task can answer them. */
  waits(kept: Pick<Waits, 'until' | 'lasts'>): readonly Waits[] {
    return [...this.#open.values()].map(({ request, ask }) => ({
      what: nameOfQuestion(request),
      whom: ask ? addresseeOf(request, ask.about.client) : 'the next client that reads the task',
      ...kept,
    }));
  }

  /** The questions as clients see them. */
  inputs(): Readonly<Record<string, InputRequest>> {
    const inputs: Record<string, InputRequest> = {};
    for (const [key, { request }] of this.#open) inputs[key] = request;
    return inputs;
  }

  /**
   * Adds a question. A key is used once in a task's life (ext-tasks, "Task Update Requests"), so a repeated question gets a
   * new one. A question that is still open when its handler runs again keeps its key.
   */
  add(name: string, request: InputRequest): void {
    const open = [...this.#open.values()].find((asked) => asked.left && asked.name === name);
    if (open) {
      open.left = false;
      open.request = request;
      return;
    }
    let key = name;
    for (let times = 2; this.#keys.has(key); times += 1) key = `${name}#${times}`;
    this.#keys.add(key);
    this.#open.set(key, { name, request, left: false, ask: undefined });
  }

  /**
   * Removes an answered question.
   *
   * @returns its name; undefined if no question is open under this key
   */
  take(key: string): string | undefined {
    const asked = this.#open.get(key);
    this.#open.delete(key);
    // Withdraws the question from a session if it was answered in another way.
    if (asked) withdraw(asked, 'it was answered');
    return asked?.name;
  }

  /** Removes questions whose answers are no longer needed. */
  drop(names: readonly string[], reason: string): void {
    for (const [key, asked] of this.#open) {
      if (!names.includes(asked.name)) continue;
      this.#open.delete(key);
      withdraw(asked, reason);
    }
  }

  /** False for the reply of a session to a question that was withdrawn, and sent to another session, in the meantime. */
  awaits({ key, ask }: RepliedMail): boolean {
    return this.#open.get(key)?.ask === ask;
  }

  clear(reason: string): void {
    for (const asked of this.#open.values()) withdraw(asked, reason);
    this.#open.clear();
  }

  /** Sends the open questions to the session of a waiting request (2025-11-25 tasks, "Input Required Status"). */
  sendToSession(about: RequestView | undefined): void {
    const session = about?.client.session;
    const { from } = this;
    if (!about || !session || !from) return;
    for (const [key, asked] of this.#open) {
      if (asked.ask) continue;
      const { method, params } = asked.request;
      const _meta = { ...(isObject(params._meta) ? params._meta : {}), [META.relatedTask]: { taskId: this.#taskId } };
      const ask: AskMail = {
        type: 'ask',
        about,
        input: { method, params: { ...params, _meta } },
        key,
        from,
      };
      asked.ask = ask;
      session.mailbox.send(ask);
    }
  }

  /** A waiting request has ended: its questions may be sent to another session. */
  aborted(request: RequestView): void {
    for (const asked of this.#open.values()) if (asked.ask?.about === request) withdraw(asked, 'its request has ended');
  }
}

function withdraw(asked: Asked, reason: string): void {
  const { ask } = asked;
  asked.ask = undefined;
  ask?.about.client.session?.mailbox.send({ type: 'withdraw', ask, reason });
}
