/** Makes of a live record what viewers are told of it: plain data without secrets, bounded in size. */
import { Buffer } from 'node:buffer';
import type { AnyStateMachine } from 'xstate';
import { fingerprint, readChart } from '../../charts/chart.ts';
import { pathsIn } from '../../charts/paths.ts';
import type { InspectionRecord } from '../../inspection/records.ts';
import { messageOf } from '../../protocol/json.ts';
import type { ChartFrame, Plain, RecordHeader, TraceRecord } from '../frames.ts';
import { readText } from '../inspector-json.ts';
import { BOUNDS, type Bounds, plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';

/** Longest message that is read: a longer one would hold the server up. */
const MAX_MESSAGE = 256 * 1024;
/** Characters of a label, and of the type of an event: a viewer may send one of any. */
const MAX_LABEL = 200;
/** Charts that are remembered: under `troupe dev`, each change of a machine makes another. */
const MAX_CHARTS = 1_000;
/** What a list of tools with their schemas takes. */
const MESSAGE: Bounds = { ...BOUNDS, members: 200, all: 64_000 };
const SMALL: Bounds = { ...BOUNDS, text: 500, all: 4_000 };

/** What XState calls a machine that has no id. */
const NO_ID = '(machine)';

export interface FrameEncoderOptions {
  readonly redactor: Redactor;
  /** Whether somebody wants to see what that actor's statechart holds. */
  wants(actor: string): boolean;
  /** A chart that nobody was told of yet. */
  chart(frame: ChartFrame): void;
}

export class FrameEncoder {
  readonly #options: FrameEncoderOptions;
  readonly #ids = new WeakMap<AnyStateMachine, string>();
  readonly #charts = new Map<string, ChartFrame>();

  constructor(options: FrameEncoderOptions) {
    this.#options = options;
  }

  /** Every chart that was told of. */
  get charts(): readonly ChartFrame[] {
    return [...this.#charts.values()];
  }

  told(record: InspectionRecord): TraceRecord {
    const { seq, at, cause } = record;
    const told: RecordHeader = { seq, at, cause };
    switch (record.type) {
      case 'created': {
        const { type, actor, kind, parent, connection, label, machine } = record;
        return {
          ...told,
          type,
          actor,
          kind,
          ...(parent === undefined ? {} : { parent }),
          ...(connection === undefined ? {} : { connection }),
          ...(label === undefined ? {} : { label: this.#words(label, MAX_LABEL) }),
          ...this.#chart(machine, actor),
        };
      }
      case 'mail': {
        const { type, actor, mail, fate } = record;
        return {
          ...told,
          type,
          actor,
          name: nameOf(mail.type),
          data: this.#data(mail),
          ...(fate === undefined ? {} : { fate }),
        };
      }
      case 'state':
        return { ...told, type: record.type, actor: record.actor, state: this.#words(record.state) };
      case 'step': {
        const { type, actor, event, edges, snapshot, handled } = record;
        return {
          ...told,
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
        return { ...told, type, actor, id, event, delay, ...(due === undefined ? {} : { due }) };
      }
      case 'emit': {
        const { type, actor, event } = record;
        return { ...told, type, actor, event: nameOf(event.type), data: this.#data(event) };
      }
      case 'crashed': {
        const { type, actor, mail, error, setAside } = record;
        return { ...told, type, actor, mail, error: this.#words(messageOf(error)), setAside };
      }
      case 'gone':
        return { ...told, type: record.type, actor: record.actor, why: this.#words(record.why) };
      case 'control':
        return { ...told, type: record.type, action: record.action, data: this.#data(record.data) };
      case 'wire': {
        const { type, connection, direction, text, about } = record;
        const bytes = Buffer.byteLength(text);
        return {
          ...told,
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

  /** What a statechart holds. */
  context(context: unknown): Plain {
    return plainOf(context, this.#options.redactor);
  }

  /**
   * The name of a statechart's chart, which is told first if nobody was told of it yet.
   *
   * @param actor whose it is: what its author has given no id, is called as they have called it for its clients
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

  /** An actor is told of also where its statechart cannot be read. */
  #chart(machine: AnyStateMachine | undefined, actor: string): { readonly chart?: string } {
    try {
      return machine === undefined ? {} : { chart: this.chartOf(machine, actor) };
    } catch {
      return {};
    }
  }

  /** A mail or event without its type. */
  #data(mail: object): Plain {
    return plainOf(mail, this.#options.redactor, { bounds: SMALL, without: 'type' });
  }

  #words(text: string, most?: number): string {
    return this.#options.redactor.words(text, most);
  }

  #message(text: string, bytes: number): { readonly message: Plain } | { readonly text: string } {
    if (text.length > MAX_MESSAGE) return { message: { ...beginningOf(text), '«cut»': `${bytes} bytes are not read` } };
    const read = readText(text);
    if (!read) return { text: this.#words(text) };
    return { message: plainOf(read.value, this.#options.redactor, { bounds: MESSAGE, parsed: true }) };
  }
}

const BEGINNING =
  /^\{"jsonrpc":"2\.0",(?:"id":(\d{1,15}|"[^"\\]{0,64}"),)?(?:"method":"([\w/]{1,64})"|"(result|error)":)/;

/** What a message is, by how nearly all begin: enough to pair it with its answer. */
function beginningOf(text: string): { readonly [name: string]: Plain } {
  const [, id, method, outcome] = BEGINNING.exec(text) ?? [];
  return {
    jsonrpc: '2.0',
    ...(id === undefined ? {} : { id: id.startsWith('"') ? id.slice(1, -1) : Number(id) }),
    ...(method === undefined ? {} : { method }),
    ...(outcome === undefined ? {} : { [outcome]: {} }),
  };
}

/** The type of an event. */
function nameOf(type: string): string {
  return type.length > MAX_LABEL ? `${type.slice(0, MAX_LABEL)}…` : type;
}

/** Whether an event says more than its type. */
function hasData(event: object): boolean {
  for (const name in event) if (name !== 'type') return true;
  return false;
}
