/**
 * The model of a server for a viewer: it takes frames, and reconstructs the state at any record of the stream. It never
 * asks the server, and stores a bounded number of records; a gap replaces older ones.
 */
import type {
  ActorView,
  ChartFrame,
  CoverageFrame,
  Frame,
  GapFrame,
  HelloFrame,
  Plain,
  RecordHeader,
  ServerCatalogue,
  Stated,
  Stepped,
  TraceRecord,
  Wired,
} from '../frames.ts';
import { ActorLine, type Since } from './actor-line.ts';
import { Doors, Machines } from './belonging.ts';
import { Causes } from './causes.ts';
import { Counter, type Coverage, coverageOf, KnownChart, type Visits } from './chart-coverage.ts';
import { Exchanges } from './exchanges.ts';
import { actorOf, CLIENT, isAuthored, type MessageRow, messageRow, UPSTREAM } from './message-rows.ts';
import { LIVE } from './ordered-log.ts';
import { Visiting, visitsUntil } from './visiting.ts';

export interface ModelOptions {
  /** Maximum number of stored records. Default: 100,000. */
  readonly maxRecords?: number;
  /** Maximum number of stored ended actors. Default: 2,000. */
  readonly maxGone?: number;
}

export class Model {
  readonly #maxRecords: number;
  readonly #maxGone: number;
  hello: HelloFrame | undefined;
  /** The reason in the server's `bye` frame. */
  bye: string | undefined;
  /** Changes with each frame. */
  version = 0;
  /** The number of changes of the process behind the stream. Each discards everything before. */
  restarts = 0;
  readonly charts = new Map<string, KnownChart>();
  readonly actors = new Map<string, ActorLine>();
  readonly causes = new Causes();
  readonly exchanges = new Exchanges();
  readonly gaps: GapFrame[] = [];
  /** True once the server has a mount. */
  mounts = false;
  /** True if it knows the run of a script. */
  runs = false;
  /** Everything that the server offers, if a frame described it. */
  catalogue: ServerCatalogue | undefined;
  /** The server's own count of visits, if the page has requested it. */
  counted: CoverageFrame | undefined;
  /** Ascending. New rows are appended in place; a new array replaces it when the oldest are discarded. */
  rows: MessageRow[] = [];
  /** The times of all records, ascending, appended in place. */
  moments: number[] = [];
  /** Records of unhandled events, dropped messages and crashes. */
  troubles: TraceRecord[] = [];
  readonly #doors = new Doors();
  readonly #machines = new Machines();
  readonly #visiting = new Visiting();
  /** Actors without a new `created` record while the live actors are listed again. */
  #unconfirmed: Set<string> | undefined;
  #gone: string[] = [];
  #dropped = 0;

  constructor({ maxRecords = 100_000, maxGone = 2_000 }: ModelOptions = {}) {
    this.#maxRecords = maxRecords;
    this.#maxGone = maxGone;
  }

  take(frame: Frame): void {
    this.version += 1;
    switch (frame.type) {
      case 'hello':
        return this.#hello(frame);
      case 'chart':
        return this.#chart(frame);
      case 'records':
        for (const record of frame.records) this.#record(record);
        return this.#bound();
      case 'gap':
        this.gaps.push(frame);
        if (this.gaps.length > 1_000) this.gaps.shift();
        return;
      case 'look':
        return this.#line(frame.look.actor).viewed(frame.look);
      case 'catalogue':
        this.catalogue = frame.catalogue;
        return;
      case 'coverage':
        this.counted = frame;
        for (const { id, chart } of frame.charts) this.#chart({ type: 'chart', id, chart });
        return;
      case 'bye':
        this.bye = frame.why;
    }
  }

  /** The sequence number of the newest record; 0 without records. */
  get newest(): number {
    return this.causes.newest?.seq ?? 0;
  }

  /** The time of a record. For {@link LIVE}: of the newest record, or of the hello without records. */
  timeAt(seq: number): number {
    return this.causes.before(seq)?.at ?? this.causes.oldest?.at ?? this.hello?.now ?? 0;
  }

  actor(address: string): ActorLine | undefined {
    return this.actors.get(address);
  }

  /** The statechart of an actor. */
  chartOf(address: string): KnownChart | undefined {
    return this.charts.get(this.actors.get(address)?.chart ?? '');
  }

  /** The start of an actor's life or of its state, and whether it may be earlier: it was not observed before. */
  since(line: ActorLine, of: 'life' | 'state', seq = LIVE): Since | undefined {
    return line.since(of, seq);
  }

  /** The actor that represents a connection: its session, or its table of requests. */
  doorOf(connection: string): string {
    return this.#doors.of(connection);
  }

  /** The visits of an actor to the states and transitions of its chart, up to a record. */
  visits(address: string, seq: number): Visits {
    const line = this.actors.get(address);
    return line ? visitsUntil(line, this.charts.get(line.chart ?? ''), seq) : new Counter();
  }

  /**
   * The coverage of each chart by all its actors until now, including discarded records: first the charts of authors as
   * the server counts them, then the others as far as they were observed.
   */
  coverage(): readonly Coverage[] {
    const counted = (this.counted?.charts ?? []).flatMap(({ id, name, states, edges }) => {
      const chart = this.charts.get(id);
      const visits = { states: new Map(Object.entries(states)), edges: new Map(Object.entries(edges)) };
      return chart ? [{ ...coverageOf(chart, visits), name }] : [];
    });
    const known = new Set(counted.map(({ chart }) => chart));
    return [...counted, ...this.#visiting.coverage([...this.charts.values()].filter(({ id }) => !known.has(id)))];
  }

  /** The data of a record. */
  dataOf(seq: number): Plain | undefined {
    const record = this.causes.find(seq);
    if (!record) return undefined;
    if (record.type === 'wire') return record.message ?? record.text;
    return 'data' in record ? record.data : undefined;
  }

  view(address: string, seq = LIVE): ActorView | undefined {
    return this.actors.get(address)?.view(seq);
  }

  /** Discards everything, as in a new model. */
  clear(): void {
    this.hello = undefined;
    this.bye = undefined;
    this.catalogue = undefined;
    this.counted = undefined;
    for (const kept of [
      this.charts,
      this.actors,
      this.#doors,
      this.#visiting,
      this.#machines,
      this.causes,
      this.exchanges,
    ])
      kept.clear();
    this.gaps.length = 0;
    this.rows = [];
    this.moments = [];
    this.troubles = [];
    this.#unconfirmed = undefined;
    this.mounts = false;
    this.runs = false;
    this.#gone = [];
    this.#dropped = 0;
    this.version += 1;
  }

  #hello(frame: HelloFrame): void {
    const before = this.hello;
    if (before && (before.pid !== frame.pid || before.epoch !== frame.epoch)) {
      this.clear();
      this.restarts += 1;
    }
    this.hello = frame;
    this.bye = undefined;
  }

  #chart({ id, chart }: ChartFrame): void {
    if (!this.charts.has(id)) this.charts.set(id, new KnownChart(id, chart));
  }

  #record(record: TraceRecord): void {
    // A resumed stream may repeat the last records.
    if (record.seq <= this.newest) return;
    const root = this.causes.add(record);
    this.moments.push(record.at);
    const row = messageRow(record, {
      sender: this.#sender(record),
      door: (connection) => this.doorOf(connection),
      far: (connection) => this.#farOf(connection),
      alive: (actor) => this.actors.get(actor)?.aliveAt(record.seq) !== false,
      authored: (actor) => isAuthored(this.actors.get(actor)?.kind ?? 'invoked'),
    });
    if (row) this.rows.push(row);
    if (record.type === 'wire') return this.#wire(record);
    if (record.type === 'control') return;
    if (record.type === 'hop') return this.exchanges.hop(root, record);
    const line = this.#line(record.actor);
    line.records.add(record);
    if (row?.mark !== undefined && row.mark !== 'queued') {
      line.troubles.add(record);
      this.troubles.push(record);
    }
    this.#introduced(record);
    switch (record.type) {
      case 'created':
        // A view may arrive before the record, and the order of actors is that of their starts.
        if (!line.lives.first) {
          this.actors.delete(record.actor);
          this.actors.set(record.actor, line);
        }
        line.created(record);
        this.mounts ||= line.kind === 'mount';
        this.runs ||= line.kind === 'run';
        line.origin ??= root;
        if (line.kind === 'request') line.serves.add(root);
        this.#machines.add(line, this.actors);
        return this.#doors.add(line, this.actors);
      case 'mail':
        line.mail.add(record);
        if (line.kind === 'request') line.serves.add(root);
        return this.exchanges.served(root, record.actor, line.kind);
      case 'state':
        return this.#state(line, record);
      case 'step':
        return this.#step(line, record);
      case 'timer':
        return line.timers.add(record);
      case 'journal':
        return line.wrote(record);
      case 'failed': {
        const { seq, element, error, incident } = record;
        return this.exchanges.handlerFailed(root, {
          seq,
          element,
          error,
          ...(incident === undefined ? {} : { incident }),
        });
      }
      case 'gone':
        return this.#ended(line, record.seq, record.at, record.why);
    }
  }

  #wire(record: RecordHeader & Wired): void {
    this.exchanges.wire(record);
    // Only a server with mounts relays requests from one connection to another.
    if (record.direction === 'in' || !this.mounts) return;
    const cause = this.causes
      .because(record.seq)
      .find((other) => other.type === 'wire' && other.connection !== record.connection);
    if (cause) this.exchanges.relayed(record.seq, cause.seq);
  }

  /** The lane of the other end of a connection. */
  #farOf(connection: string): string {
    const mount = this.actors.get(this.actors.get(connection)?.parent ?? '');
    return mount?.kind === 'mount' ? `${UPSTREAM}${mount.label ?? mount.address}` : CLIENT;
  }

  #state(line: ActorLine, record: RecordHeader & Stated): void {
    const chart = this.charts.get(line.chart ?? '');
    const before = line.standings.last?.active ?? [];
    // A state outside of the chart, such as hibernation, does not change the active states.
    const paths = chart?.activeOf(record.state) ?? [];
    const active = paths.length === 0 ? before : paths;
    if (line.state(record, active) && line.chart !== undefined)
      this.#visiting.step(line.chart, before, { active, edges: [] }, chart);
  }

  #step(line: ActorLine, record: RecordHeader & Stepped): void {
    const before = line.standings.last?.active ?? [];
    if (record.chart !== undefined && record.chart !== line.chart) {
      line.chart = record.chart;
      this.#machines.add(line, this.actors);
    }
    line.step(record);
    this.#visiting.step(line.chart ?? record.actor, before, record, this.charts.get(line.chart ?? ''));
  }

  #ended(line: ActorLine, seq: number, at: number, why: string): void {
    line.gone(seq, at, why);
    if ((line.kind === 'requests' || line.kind === 'client') && line.connection !== undefined)
      this.exchanges.closed(line.connection, seq, at);
    this.#gone.push(line.address);
    while (this.#gone.length > this.#maxGone) {
      const address = this.#gone.shift() ?? '';
      // Another actor may have its address by now.
      if (this.actors.get(address)?.aliveAt(LIVE) === false) this.actors.delete(address);
    }
  }

  /**
   * After an interruption, the server lists its live actors again. Actors that are not in the list ended in between.
   */
  #introduced({ type, actor, seq, at }: Exclude<TraceRecord, { type: 'wire' | 'hop' | 'control' }>): void {
    if (type === 'created' && this.actors.get(actor)?.kind === 'server' && this.actors.get(actor)?.aliveAt(LIVE))
      this.#unconfirmed ??= new Set(
        [...this.actors.values()].filter((line) => line.aliveAt(LIVE)).map((line) => line.address),
      );
    if (type === 'created') this.#unconfirmed?.delete(actor);
    if (!this.#unconfirmed || type === 'created' || type === 'state') return;
    for (const address of this.#unconfirmed) this.#ended(this.#line(address), seq, at, 'ended while not observed');
    this.#unconfirmed = undefined;
  }

  #sender({ cause }: TraceRecord): string | undefined {
    const causing = cause === 0 ? undefined : this.causes.find(cause);
    if (!causing) return undefined;
    return causing.type === 'wire' && causing.direction === 'in' ? this.doorOf(causing.connection) : actorOf(causing);
  }

  #line(address: string): ActorLine {
    let line = this.actors.get(address);
    if (!line) {
      line = new ActorLine(address);
      this.actors.set(address, line);
    }
    return line;
  }

  /** Discards the oldest tenth if there are too many records. */
  #bound(): void {
    if (this.causes.length <= this.#maxRecords) return;
    const oldest = this.causes.oldest;
    const seq = this.causes.newestFrom(Math.floor(this.#maxRecords * 0.9));
    const records = this.causes.length - Math.floor(this.#maxRecords * 0.9);
    this.#dropped += records;
    this.causes.forget(seq);
    this.exchanges.forget(seq);
    for (const line of this.actors.values()) line.forget(seq);
    this.rows = this.rows.filter((row) => row.seq >= seq);
    this.moments.splice(0, this.moments.length - this.causes.length);
    this.troubles = this.troubles.filter((record) => record.seq >= seq);
    if (this.gaps[0]?.why === 'forgotten' && this.gaps[0].exchanges === 0) this.gaps.shift();
    const at = this.causes.oldest?.at ?? 0;
    const from = (oldest?.seq ?? seq) - this.#dropped + records;
    this.gaps.unshift({
      type: 'gap',
      from: Math.max(1, from),
      to: seq - 1,
      at,
      records: this.#dropped,
      exchanges: 0,
      why: 'forgotten',
    });
  }
}
