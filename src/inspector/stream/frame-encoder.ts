/** Encodes live records for viewers: plain data without secrets, bounded in size. */
import { Buffer } from 'node:buffer';
import type { AnyStateMachine } from 'xstate';
import { authoredStack } from '../../core/kernel/authored-stack.ts';
import { fingerprint, readChart } from '../../core/kernel/charts/chart.ts';
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import type { InspectionRecord } from '../../core/kernel/inspection/records.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { ChartFrame, Plain, RecordHeader, TraceRecord } from '../frames.ts';
import { readText } from '../inspector-json.ts';
import { BOUNDS, type Bounds, plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';

/** Longest message that is parsed: a longer one would block the server. */
const MAX_MESSAGE = 256 * 1024;
/** Maximum length of a label and of an event type: a viewer may send any. */
const MAX_LABEL = 200;
/** Maximum number of stored charts: under `troupe dev`, each change of a machine makes another. */
const MAX_CHARTS = 1_000;
/** Large enough for a list of tools with their schemas. */
const MESSAGE: Bounds = { ...BOUNDS, members: 200, all: 64_000 };
/** Large enough for a whole script. */
const SCRIPT: Bounds = { ...BOUNDS, text: 65_536, all: 70_000 };
const SMALL: Bounds = { ...BOUNDS, text: 500, all: 4_000 };

/** XState's id of a machine without an id. */
const NO_ID = '(machine)';

interface FrameEncoderOptions {
  readonly redactor: Redactor;
  /** True if a viewer wants to see the context of that actor's statechart. */
  wants(actor: string): boolean;
  /** Called with each new chart, before the first record that uses it. */
  chart(frame: ChartFrame): void;
}

export class FrameEncoder {
  readonly #options: FrameEncoderOptions;
  readonly #ids = new WeakMap<AnyStateMachine, string>();
  readonly #charts = new Map<string, ChartFrame>();

  constructor(options: FrameEncoderOptions) {
    this.#options = options;
  }

  /** Every chart that was encoded. */
  get charts(): readonly ChartFrame[] {
    return [...this.#charts.values()];
  }

  encode(record: InspectionRecord): TraceRecord {
    const { seq, at, cause } = record;
    const header: RecordHeader = { seq, at, cause };
    switch (record.type) {
      case 'created': {
        const { type, actor, kind, parent, connection, label, machine, since } = record;
        return {
          ...header,
          type,
          actor,
          kind,
          ...(parent === undefined ? {} : { parent }),
          ...(connection === undefined ? {} : { connection }),
          ...(label === undefined ? {} : { label: this.#words(label, MAX_LABEL) }),
          ...this.#chart(machine, actor),
          ...(since === undefined ? {} : { since }),
        };
      }
      case 'mail': {
        const { type, actor, mail, fate } = record;
        return {
          ...header,
          type,
          actor,
          name: nameOf(mail.type),
          data: this.#data(mail),
          ...(fate === undefined ? {} : { fate }),
        };
      }
      case 'state':
        return { ...header, type: record.type, actor: record.actor, state: this.#words(record.state) };
      case 'step': {
        const { type, actor, event, edges, snapshot, handled } = record;
        return {
          ...header,
          type,
          actor,
          ...this.#chart(snapshot.machine, actor),
          event: nameOf(event.type),
          edges,
          handled,
          ...(hasData(event) ? { data: this.#data(event) } : {}),
          active: pathsIn(snapshot.value),
          status: snapshot.status,
          ...(this.#options.wants(actor) ? { context: this.context(snapshot.context) } : {}),
        };
      }
      case 'timer': {
        const { type, actor, id, event, delay, due } = record;
        return { ...header, type, actor, id, event, delay, ...(due === undefined ? {} : { due }) };
      }
      case 'emit': {
        const { type, actor, event } = record;
        return { ...header, type, actor, event: nameOf(event.type), data: this.#data(event) };
      }
      case 'crashed': {
        const { type, actor, mail, error, quarantined } = record;
        return { ...header, type, actor, mail, error: this.#words(messageOf(error)), quarantined };
      }
      case 'failed': {
        const { type, actor, element, error, incident } = record;
        return {
          ...header,
          type,
          actor,
          element: this.#words(element, MAX_LABEL),
          error: this.#words(authoredStack(error)),
          ...(incident === undefined ? {} : { incident }),
        };
      }
      case 'gone':
        return { ...header, type: record.type, actor: record.actor, why: this.#words(record.why) };
      case 'hop': {
        const { type, way, node, number, end } = record;
        return { ...header, type, way, node, number, ...(end === undefined ? {} : { end }) };
      }
      case 'journal': {
        const { type, actor, index, what, date, call, name, line, data } = record;
        const bounds = what === 'begun' ? SCRIPT : SMALL;
        return {
          ...header,
          ...{ type, actor, index, what },
          ...(date === undefined ? {} : { date }),
          ...(call === undefined ? {} : { call }),
          ...(name === undefined ? {} : { name: this.#words(name, MAX_LABEL) }),
          ...(line === undefined ? {} : { line }),
          ...(data === undefined ? {} : { data: plainOf(data, this.#options.redactor, { bounds }) }),
        };
      }
      case 'control':
        return { ...header, type: record.type, action: record.action, data: this.#data(record.data) };
      case 'wire': {
        const { type, connection, direction, text, about } = record;
        const bytes = Buffer.byteLength(text);
        return {
          ...header,
          type,
          connection,
          direction,
          bytes,
          ...this.#message(text, bytes),
          ...(about ? { about } : {}),
        };
      }
    }
  }

  /** The context of a statechart. */
  context(context: unknown): Plain {
    return plainOf(context, this.#options.redactor);
  }

  /**
   * The id of a statechart's chart. A new chart is passed to the viewers first.
   *
   * @param actor the actor of the chart: a machine without an id takes the name that its author gave it for clients
   */
  chartOf(machine: AnyStateMachine, actor: string): string {
    const known = this.#ids.get(machine);
    if (known !== undefined && this.#charts.has(known)) return known;
    this.#options.redactor.learn(machine);
    const chart = readChart(machine);
    const id = fingerprint(chart);
    this.#ids.set(machine, id);
    if (this.#charts.has(id)) return id;
    const key = chart.key === NO_ID ? /^(?:handle|machine)\/([^/]+)\/[^/]+$/.exec(actor)?.[1] : undefined;
    const frame: ChartFrame = { type: 'chart', id, chart: key === undefined ? chart : { ...chart, key } };
    this.#charts.set(id, frame);
    if (this.#charts.size > MAX_CHARTS)
      for (const oldest of this.#charts.keys()) if (this.#charts.delete(oldest)) break;
    this.#options.chart(frame);
    return id;
  }

  /** An actor is encoded even if its statechart cannot be read. */
  #chart(machine: AnyStateMachine | undefined, actor: string): { readonly chart?: string } {
    try {
      return machine === undefined ? {} : { chart: this.chartOf(machine, actor) };
    } catch {
      return {};
    }
  }

  /** The data of a message or an event, without its type. */
  #data(mail: object): Plain {
    return plainOf(mail, this.#options.redactor, { bounds: SMALL, without: 'type' });
  }

  #words(text: string, most?: number): string {
    return this.#options.redactor.words(text, most);
  }

  #message(text: string, bytes: number): { readonly message: Plain } | { readonly text: string } {
    if (text.length > MAX_MESSAGE) return { message: { ...beginningOf(text), '«cut»': `${bytes} bytes, not parsed` } };
    const read = readText(text);
    if (!read) return { text: this.#words(text) };
    return { message: plainOf(read.value, this.#options.redactor, { bounds: MESSAGE, parsed: true }) };
  }
}

const BEGINNING =
  /^\{"jsonrpc":"2\.0",(?:"id":(\d{1,15}|"[^"\\]{0,64}"),)?(?:"method":"([\w/]{1,64})"|"(result|error)":)/;

/** The kind of a long message, by its usual beginning: enough to pair it with its response. */
function beginningOf(text: string): { readonly [name: string]: Plain } {
  const [, id, method, outcome] = BEGINNING.exec(text) ?? [];
  return {
    jsonrpc: '2.0',
    ...(id === undefined ? {} : { id: id.startsWith('"') ? id.slice(1, -1) : Number(id) }),
    ...(method === undefined ? {} : { method }),
    ...(outcome === undefined ? {} : { [outcome]: {} }),
  };
}

/** The name of an event type, cut to its limit. */
function nameOf(type: string): string {
  return type.length > MAX_LABEL ? `${type.slice(0, MAX_LABEL)}…` : type;
}

/** True if an event has more than its type. */
function hasData(event: object): boolean {
  for (const name in event) if (name !== 'type') return true;
  return false;
}
