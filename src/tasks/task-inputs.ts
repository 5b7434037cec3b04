/** The questions of one task: shown under keys of which none is used twice, and put to a session where one waits for the task's end. */
import { addresseeOf, nameOfQuestion } from '../inspection/display-names.ts';
import type { Waits } from '../inspection/records.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { InputRequest, Reply } from '../messages/input-messages.ts';
import type { AskMail } from '../messages/session-messages.ts';
import type { QuestionsSnapshot } from '../messages/task-messages.ts';
import { isObject } from '../protocol/json.ts';
import { META } from '../protocol/meta.ts';

/** A question that is open. */
interface Asked {
  /** Names it to the conversation, where a question that is put again keeps its name. */
  readonly name: string;
  request: InputRequest;
  /** Its handler is gone, and has not asked it anew. */
  left: boolean;
  /** Where it was put to a session, for one of the requests that wait for the end. */
  ask: AskMail | undefined;
}

export class TaskInputs {
  readonly #taskId: string;
  readonly #replied: (key: string, reply: Reply) => void;
  readonly #open = new Map<string, Asked>();
  /** Every key that was ever given out. */
  readonly #keys: Set<string>;

  /**
   * @param replied hears what a session responds
   * @param was the questions of a task that was kept
   */
  constructor(taskId: string, replied: (key: string, reply: Reply) => void, was?: QuestionsSnapshot) {
    this.#taskId = taskId;
    this.#replied = replied;
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

  /** What the task waits for, as long as it is kept. Its client may be anybody who may see it. */
  waits(kept: Pick<Waits, 'until' | 'lasts'>): readonly Waits[] {
    return [...this.#open.values()].map(({ request, ask }) => ({
      what: nameOfQuestion(request),
      whom: ask ? addresseeOf(request, ask.about.client) : 'the next client that reads the task',
      ...kept,
    }));
  }

  /** As they are shown. */
  inputs(): Readonly<Record<string, InputRequest>> {
    const inputs: Record<string, InputRequest> = {};
    for (const [key, { request }] of this.#open) inputs[key] = request;
    return inputs;
  }

  /**
   * A key is used once in a task's life (ext-tasks, "Task Update Requests"): a question that is put again gets another. One
   * that is open still, when its handler is run anew and asks it, keeps its key.
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

  /** Takes the question that was answered. @returns its name; undefined where none is open under this key */
  take(key: string): string | undefined {
    const asked = this.#open.get(key);
    this.#open.delete(key);
    // Whoever else was asked, where it was answered by another way.
    if (asked) withdraw(asked, 'it was answered');
    return asked?.name;
  }

  /** Nobody waits for the answers to these any more. */
  drop(names: readonly string[], reason: string): void {
    for (const [key, asked] of this.#open) {
      if (!names.includes(asked.name)) continue;
      this.#open.delete(key);
      withdraw(asked, reason);
    }
  }

  clear(reason: string): void {
    for (const asked of this.#open.values()) withdraw(asked, reason);
    this.#open.clear();
  }

  /** Puts what is open to the session of a request that waits (2025-11-25 tasks, "Input Required Status"). */
  put(about: ActiveRequest | undefined): void {
    const session = about?.client.session;
    if (!about || !session) return;
    for (const [key, asked] of this.#open) {
      if (asked.ask) continue;
      const { method, params } = asked.request;
      const _meta = { ...(isObject(params._meta) ? params._meta : {}), [META.relatedTask]: { taskId: this.#taskId } };
      const ask: AskMail = {
        type: 'ask',
        about,
        input: { method, params: { ...params, _meta } },
        // A session may respond to what was withdrawn, and put to another, meanwhile.
        reply: (reply) => asked.ask === ask && this.#replied(key, reply),
      };
      asked.ask = ask;
      session.mailbox.send(ask);
    }
  }

  /** A request that waited was ended: what was put for it is open to others. */
  left(request: ActiveRequest): void {
    for (const asked of this.#open.values()) if (asked.ask?.about === request) withdraw(asked, 'its request has ended');
  }
}

function withdraw(asked: Asked, reason: string): void {
  const { ask } = asked;
  asked.ask = undefined;
  ask?.about.client.session?.mailbox.send({ type: 'withdraw', ask, reason });
}
