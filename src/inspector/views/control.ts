/**
 * Commands of viewers, if the inspector was opened with control. Each command is a record and the cause of its
 * consequences; without a listener, the operator's log has it.
 */
import type { Timer } from '../../clock.ts';
import { describe, isObject } from '../../protocol/json.ts';
import { META } from '../../protocol/meta.ts';
import { LATEST_MODERN } from '../../protocol/revisions.ts';
import type { Internals } from '../../runtime/internals.ts';
import { type MemoryPeer, memory } from '../../transports/memory.ts';
import { type AnyEvent, InputError, readViewerEvent } from '../http/viewer-input.ts';
import { jsonTextOf, readText } from '../inspector-json.ts';
import { plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';

type Order =
  | { readonly action: 'send'; readonly actor: string; readonly event: AnyEvent }
  | { readonly action: 'call'; readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> }
  | { readonly action: 'close'; readonly connection: string };

/** Longest wait for the result of a call. The server's own deadlines expire earlier. */
const CALL_MS = 600_000;
/** Maximum number of pending calls. */
const MAX_CALLS = 64;
/** Maximum number of logged characters of a command. */
const MAX_LOGGED = 500;

export interface ControllerOptions {
  readonly inside: Internals;
  readonly redactor: Redactor;
  readonly version: string;
  /** Ends a connection. */
  end(connection: string, reason: string): void;
}

interface Waiting {
  answer(message: Readonly<Record<string, unknown>>): void;
}

export class Controller {
  readonly #options: ControllerOptions;
  readonly #calls = new Map<number, Waiting>();
  #peer: Promise<MemoryPeer> | undefined;
  #last = 0;

  constructor(options: ControllerOptions) {
    this.#options = options;
  }

  /** @returns the outcome as a text. @throws {InputError} */
  async run(given: unknown): Promise<string> {
    const order = readOrder(given);
    const { inspection, log } = this.#options.inside;
    const { action, ...data } = order;
    // Without a listener, no record is made: log the command for the operator.
    if (!inspection.observed) log('info', `inspector: ${action} ${this.#words(data).text.slice(0, MAX_LOGGED)}`);
    const cause = inspection.on ? inspection.record({ type: 'control', action, data }) : 0;
    const run = (): string | Promise<string> => {
      switch (order.action) {
        case 'send':
          return this.#send(order);
        case 'call':
          return this.#call(order);
        case 'close':
          return this.#close(order);
      }
    };
    // A call that waits for a connection continues in a later turn, outside of the cause.
    if (order.action === 'call') await this.#connected();
    return inspection.withCause(cause, run);
  }

  #send({ actor, event }: Extract<Order, { action: 'send' }>): string {
    const live = this.#options.inside.inspection.live(actor);
    if (!live) throw new InputError(404, `actor: no live actor has the address "${actor}"`);
    if (!live.give)
      throw new InputError(409, `${actor} (${live.kind}) has no statechart that accepts events from outside`);
    try {
      live.give({ ...event });
    } catch (error) {
      const { text } = this.#words(error instanceof Error ? error.message : String(error));
      throw new InputError(409, `${actor} did not accept "${event.type}": ${text}`);
    }
    return `sent "${event.type}" to ${actor}`;
  }

  #close({ connection }: Extract<Order, { action: 'close' }>): string {
    const { inspection } = this.#options.inside;
    if (!inspection.live(`session/${connection}`) && !inspection.live(`requests/${connection}`))
      throw new InputError(404, `connection: no open connection has the name "${connection}"`);
    this.#options.end(connection, 'closed in the inspector');
    return `closed connection ${connection}`;
  }

  async #call({ tool, arguments: args }: Extract<Order, { action: 'call' }>): Promise<string> {
    if (this.#calls.size >= MAX_CALLS)
      throw new InputError(409, `${this.#calls.size} calls are pending, which is the limit. Wait for a result.`);
    this.#last += 1;
    const id = this.#last;
    const text = this.#textOf(id, tool, args);
    const answered = this.#answer(id);
    // Send in this turn, so that the message on the wire has the record as its cause.
    this.#sender?.send(text);
    const { error, result } = await answered;
    if (isObject(error)) return `"${tool}" was rejected: ${this.#words(error.message).text}`;
    const failed = isObject(result) && result.isError === true;
    return `"${tool}" ${failed ? 'failed' : 'answered'}: ${jsonTextOf(this.#words(result).value)}`;
  }

  /** Runs before a wait for the response starts: an exception would leave it without an end. */
  #textOf(id: number, tool: string, args: Readonly<Record<string, unknown>>): string {
    const _meta = {
      [META.protocolVersion]: LATEST_MODERN,
      [META.clientInfo]: { name: 'troupe-inspector', version: this.#options.version },
      [META.clientCapabilities]: {},
    };
    const params = { name: tool, arguments: args, _meta };
    try {
      return jsonTextOf({ jsonrpc: '2.0', id, method: 'tools/call', params });
    } catch {
      throw new InputError(400, 'arguments: nested too deeply for JSON');
    }
  }

  #answer(id: number): Promise<Readonly<Record<string, unknown>>> {
    return new Promise((resolve, reject) => {
      const late: Timer = this.#options.inside.clock.after(CALL_MS, () => {
        this.#calls.delete(id);
        reject(new InputError(504, `no response within ${CALL_MS} ms`));
      });
      this.#calls.set(id, {
        answer(message) {
          late.cancel();
          resolve(message);
        },
      });
    });
  }

  #sender: MemoryPeer | undefined;

  /** Calls use a connection of their own, like any client's. The first call opens it. */
  #connected(): Promise<MemoryPeer> {
    this.#peer ??= this.#connect();
    this.#peer.catch(() => {
      this.#peer = undefined;
    });
    return this.#peer;
  }

  async #connect(): Promise<MemoryPeer> {
    const { transport, connect } = memory();
    await this.#options.inside.open(transport);
    const peer = connect();
    this.#sender = peer;
    peer.onText((text) => {
      const message = readText(text)?.value;
      if (!isObject(message) || typeof message.id !== 'number') return;
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      call?.answer(message);
    });
    void peer.closed.then((reason) => {
      this.#peer = undefined;
      this.#sender = undefined;
      for (const { answer } of this.#calls.values())
        answer({ error: { message: `the connection is closed (${reason})` } });
      this.#calls.clear();
    });
    return peer;
  }

  #words(value: unknown): { readonly value: ReturnType<typeof plainOf>; readonly text: string } {
    const plain = plainOf(value, this.#options.redactor);
    return { value: plain, text: typeof plain === 'string' ? plain : jsonTextOf(plain) };
  }
}

/** @throws {InputError} for an invalid command */
function readOrder(given: unknown): Order {
  const expected = (what: string, came: unknown): InputError => new InputError(400, `${what}, got ${describe(came)}`);
  if (!isObject(given)) throw expected('expected an object with an action', given);
  const { action, actor, event, tool, connection } = given;
  switch (action) {
    case 'send':
      if (typeof actor !== 'string') throw expected('actor: expected an address', actor);
      return { action, actor, event: readViewerEvent(event) };
    case 'call': {
      const args = given.arguments ?? {};
      if (typeof tool !== 'string') throw expected("tool: expected a tool's name", tool);
      if (!isObject(args)) throw expected('arguments: expected an object', args);
      return { action, tool, arguments: args };
    }
    case 'close':
      if (typeof connection !== 'string') throw expected("connection: expected a connection's name", connection);
      return { action, connection };
    default:
      throw expected('action: expected "send", "call" or "close"', action);
  }
}
