/**
 * Commands of viewers, if the inspector was opened with control. Each command is a record and the cause of its
 * consequences; without a listener, the operator's log has it.
 */
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import type { Approvals } from '../../features/approvals/approval-interface.ts';
import type { Internals } from '../../features/server/internals.ts';
import type { ApprovalsView, CallResult, CallsState } from '../calls/call-messages.ts';
import { ServerCalls, type ServerReach } from '../calls/server-calls.ts';
import { InputError } from '../http/viewer-input.ts';
import { jsonTextOf } from '../inspector-json.ts';
import { plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';
import type { EventTraffic } from '../traffic/event-traffic.ts';
import { type Command, readCommand } from './read-command.ts';
import { approvalsView, decideAs } from './viewer-approvals.ts';

/** Maximum number of logged characters of a command. */
const MAX_LOGGED = 500;

interface ControllerOptions {
  readonly inside: Pick<Internals, 'clock' | 'inspection' | 'log' | 'audit'>;
  readonly reach: ServerReach;
  readonly redactor: Redactor;
  readonly version: string;
  /** Undefined for a client. */
  readonly approvals?: Approvals | undefined;
  /** Undefined for a client. */
  readonly traffic?: EventTraffic | undefined;
  /** Ends a connection. */
  end(connection: string, reason: string): void;
}

/** The outcome of a command: a text for people, or data for the page. */
type CommandOutcome = string | { readonly [name: string]: unknown };

export class Controller {
  readonly #options: ControllerOptions;
  readonly #calls: ServerCalls;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#calls = new ServerCalls(options);
  }

  /** @throws {InputError} */
  async run(given: unknown): Promise<CommandOutcome> {
    const command = this.#named(readCommand(given));
    const { audit, inspection, log } = this.#options.inside;
    const { action, ...data } = command;
    audit?.send({ type: 'control', action, element: elementOf(command) });
    // Without a listener, no record is made: log the command for the operator.
    if (!inspection.observed)
      log('info', `inspector: ${action} ${this.#words(data).slice(0, MAX_LOGGED)}`, { event: 'inspector' });
    const record = inspection.on ? inspection.record({ type: 'control', action, data }) : 0;
    return inspection.withCause(record, () => this.#run(command, record));
  }

  /** The calls of viewers, once they have changed since that version. */
  calls(since: number): Promise<CallsState> {
    return this.#calls.stateAfter(since);
  }

  /** @throws {InputError} */
  approvals(): Promise<ApprovalsView> {
    const { approvals } = this.#options;
    return approvals ? approvalsView(approvals) : Promise.resolve({ open: [], grants: [] });
  }

  /** @throws {InputError} */
  get #traffic(): EventTraffic {
    const { traffic } = this.#options;
    if (!traffic) throw new InputError(404, 'events: a client has none');
    return traffic;
  }

  /** @throws {InputError} for a call without a result */
  result(call: number): CallResult {
    return this.#calls.result(call);
  }

  /** Ends the sessions of the calls. */
  close(): Promise<void> {
    return this.#calls.close();
  }

  /** The record of a call names its principal, also the default. */
  #named(command: Command): Command {
    return 'caller' in command ? { ...command, caller: this.#calls.named(command.caller) } : command;
  }

  #run(command: Command, record: number): CommandOutcome | Promise<CommandOutcome> {
    const calls = this.#calls;
    switch (command.action) {
      case 'send':
        return this.#send(command);
      case 'close':
        return this.#close(command);
      case 'call': {
        // Its caller sees texts only, so it answers nothing that the server asks.
        const request = { kind: 'tool', name: command.tool, arguments: command.arguments } as const;
        return calls.outcome(calls.start(request, calls.named({ answers: [] }), record));
      }
      case 'start':
        return { call: calls.start(command.request, command.caller, record) };
      case 'again':
        return { call: calls.again(command.call, record) };
      case 'cancel':
        calls.cancel(command.call);
        return 'cancelled';
      case 'answer':
        calls.answer(command.question, jsonMembers(command.answer));
        return 'answered';
      case 'complete':
        return calls.complete(command.reference, command.argument, command.known, command.caller, record);
      case 'watch':
        return calls.watch(command.uri, command.caller, record).then(() => `watches ${command.uri}`);
      case 'unwatch':
        calls.unwatch(command.uri);
        return `watches ${command.uri} no more`;
      case 'view':
        return calls.passOn(command.method, command.params, command.caller, record);
      case 'approve':
      case 'deny':
      case 'revoke': {
        const { approvals } = this.#options;
        if (!approvals) throw new InputError(404, 'approvals: a client has none');
        return decideAs(approvals, command);
      }
      case 'redeliver':
        return this.#traffic.again(command.ref);
      case 'emit':
        return this.#traffic.emit(command.event, command.data);
      case 'run':
        return this.#traffic.run(command);
      case 'forget':
        calls.forget();
        return 'forgot the ended calls';
    }
  }

  #send({ actor, event }: Extract<Command, { action: 'send' }>): string {
    const live = this.#options.inside.inspection.live(actor);
    if (!live) throw new InputError(404, `actor: no live actor has the address "${actor}"`);
    if (!live.give)
      throw new InputError(409, `${actor} (${live.kind}) has no statechart that accepts events from outside`);
    try {
      live.give({ ...event });
    } catch (error) {
      const text = this.#words(error instanceof Error ? error.message : String(error));
      throw new InputError(409, `${actor} did not accept "${event.type}": ${text}`);
    }
    return `sent "${event.type}" to ${actor}`;
  }

  #close({ connection }: Extract<Command, { action: 'close' }>): string {
    const { inspection } = this.#options.inside;
    if (!inspection.live(`session/${connection}`) && !inspection.live(`requests/${connection}`))
      throw new InputError(404, `connection: no open connection has the name "${connection}"`);
    this.#options.end(connection, 'closed in the inspector');
    return `closed connection ${connection}`;
  }

  #words(value: unknown): string {
    const plain = plainOf(value, this.#options.redactor);
    return typeof plain === 'string' ? plain : jsonTextOf(plain);
  }
}

/** The subject of a command, without its data. */
function elementOf(command: Command): string | undefined {
  switch (command.action) {
    case 'send':
      return `${command.event.type} to ${command.actor}`;
    case 'close':
      return `connection ${command.connection}`;
    case 'call':
      return `tool ${command.tool}`;
    case 'approve':
    case 'deny':
    case 'revoke':
      return `approval ${command.approval}`;
    case 'redeliver':
      return `delivery ${command.ref}`;
    case 'emit':
      return `event ${command.event}`;
    case 'run':
      return `schedule ${command.schedule}${command.machine === undefined ? '' : ` of ${command.machine}`}`;
    default:
      return undefined;
  }
}

function jsonMembers(value: object): JsonObject {
  return isJsonObject(value) ? value : {};
}
