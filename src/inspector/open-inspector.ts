/** Opens an inspector: connects the observation of a server, the viewers, and the HTTP listener. */

import type { Clock } from '../core/kernel/clock.ts';
import { nameOfNode } from '../core/kernel/node-name.ts';
import { errorFields } from '../core/kernel/operator-log.ts';
import { packageVersion } from '../core/kernel/package-files.ts';
import { describe, stackOf } from '../core/protocol/json.ts';
import * as option from '../core/protocol/option-rows.ts';
import type { Transport, TransportHost } from '../core/transports/transport.ts';
import { INTERNALS, type Internals } from '../features/server/internals.ts';
import { isServer, type Server } from '../features/server/server.ts';
import type { ConnectedReach } from './calls/server-calls.ts';
import type { ClientListing } from './catalogue/client-listing.ts';
import { CatalogueReader } from './catalogue/server-catalogue.ts';
import { type ConnectHelp, FORMAT, type HelloFrame } from './frames.ts';
import { InspectorRoutes } from './http/inspector-routes.ts';
import { type InspectorListener, listen } from './http/listener.ts';
import { PageFiles } from './http/page-files.ts';
import { newToken, problemOfToken } from './http/token-guard.ts';
import { openViewFrames, type ViewFrames } from './http/view-frames.ts';
import { type RedactOptions, Redactor } from './redaction/redact.ts';
import { Observation } from './stream/observation.ts';
import { ProcessCoverage } from './stream/process-coverage.ts';
import { type Recorder, type RecordOptions, recordInto, recordingOf } from './stream/recording.ts';
import { Viewers } from './stream/viewers.ts';
import type { Watcher } from './stream/watcher.ts';
import { EventTraffic } from './traffic/event-traffic.ts';
import { Controller } from './views/control.ts';

export interface InspectorOptions {
  /** The port on 127.0.0.1. Default: any free port. */
  readonly port?: number;
  /**
   * The secret that every viewer needs, with 256 random bits. Set it for a process that replaces another one. Default:
   * a new token for each start.
   */
  readonly token?: string;
  /** True: viewers may send events to actors, call tools and close connections. Default: they may only view. */
  readonly control?: boolean;
  /**
   * Secrets to hide besides those that the inspector recognizes. A statechart declares its own in `meta: { redact:
   * ['card', 'customer.email'] }`.
   */
  readonly redact?: RedactOptions;
  /** Maximum number of viewers at once. Default 16. */
  readonly maxViewers?: number;
  /**
   * True: observes the server from the start, at the cost of an open page, so that a page shows what happened before it
   * was opened: up to 16 MB of frames. Default: observes while a page is open.
   */
  readonly history?: boolean;
  /**
   * Returns how a client is connected: the page shows it while no client is. Called for each viewer. Default: the page
   * shows nothing.
   */
  readonly connect?: () => ConnectHelp | undefined;
}

export interface RecordingOptions
  extends Pick<InspectorOptions, 'redact'>,
    Pick<RecordOptions, 'append' | 'maxBytes'> {}

/** An open inspector. */
export interface OpenInspector {
  /** The address for a browser. The token is behind the `#`, which browsers never send. */
  readonly url: string;
  /**
   * Sends the viewers a `bye` frame and closes the inspector. The server continues. Idempotent; a closing server closes
   * it too.
   */
  close(): Promise<void>;
}

/** The place of a token in a client's entry, which is no secret. */
const PLACEHOLDER = 'Bearer TOKEN';
/** Maximum length of a client's entry in characters. */
const MAX_ENTRY = 4_000;
/** Maximum number of logged faults of the inspector itself. */
const MAX_FAULTS = 5;

/** Keeps the observation attached without a viewer. Its frames wait in the backlog. */
const IN_ADVANCE: Watcher = { focus: new Set(), everything: false, deliver() {}, viewChanged() {} };

const ROWS: option.Rows<InspectorOptions> = {
  port: option.portNumber,
  token: problemOfToken,
  control: option.flag,
  redact: option.group('{ keys, values }', {
    keys: option.strings,
    values: option.expected(
      'a list of patterns',
      (value) => Array.isArray(value) && value.every((each) => each instanceof RegExp),
    ),
  }),
  maxViewers: option.count,
  history: option.flag,
  connect: option.functional,
};

/**
 * Opens a page on 127.0.0.1 that shows this server, live. Without a viewer, only the steps of statecharts are counted.
 *
 * @throws {TypeError | RangeError} for a value that is no server, or invalid options; {Error} if the port is in use
 * @example
 * const inspector = await openInspector(server);
 * console.error(inspector.url); // http://127.0.0.1:41873/#pZ8…
 */
export async function openInspector(server: Server, options: InspectorOptions = {}): Promise<OpenInspector> {
  const inside = insideOf(server, 'openInspector');
  option.check('openInspector: ', options, ROWS);
  const {
    port = 0,
    token = newToken(),
    control = false,
    maxViewers = 16,
    history = false,
    connect = () => undefined,
  } = options;
  const controller: ControllerOf | undefined = control
    ? (redactor, end, traffic) =>
        new Controller({
          ...{ inside, reach: inside, redactor, version: packageVersion(), approvals: server.approvals, end, traffic },
        })
    : undefined;
  const settings = { port, token, maxViewers, history, redact: options.redact ?? {}, connect };
  const program = { ...inside, info: server.info };
  const coverage = new ProcessCoverage(server, inside.inspection, inside.clock);
  const readers = {
    coverage,
    catalogue: (redactor: Redactor) => catalogueOf(server, inside, redactor),
    traffic: (redactor: Redactor) => new EventTraffic({ server, inside, redactor }),
  };
  const open = new Inspecting(program, controller, settings, readers);
  try {
    await inside.open(open);
  } catch (error) {
    coverage.close();
    throw error;
  }
  return open;
}

/** The parts of an inspector that read a server. Only a server in this process has coverage and event traffic. */
interface ServerReaders {
  readonly coverage?: ProcessCoverage;
  traffic?(redactor: Redactor): EventTraffic;
  catalogue(redactor: Redactor): CatalogueReader;
}

/** A program that an inspector shows: a server, or a client. */
interface InspectedProgram extends Pick<Internals, 'inspection' | 'clock' | 'log' | 'machines'> {
  readonly info: { readonly name: string; readonly version: string; readonly title?: string | undefined };
  readonly remote?: boolean;
}

/** The connection that {@link openInspectorOn} shows. */
interface InspectedConnection extends ConnectedReach {
  /** The lists of the server. */
  readonly listing: ClientListing;
}

/**
 * Opens a page on 127.0.0.1 that shows a client, and the server to which it is connected. Viewers call the server
 * through this client: the program is the viewer's own, and has no other caller.
 *
 * @throws {Error} if the port is in use
 * @example const inspector = await openInspectorOn({ client, questions, listing: new ClientListing(client) });
 */
export async function openInspectorOn({ client, questions, listing }: InspectedConnection): Promise<OpenInspector> {
  const { inside } = client;
  const { name, version, title, revision } = client.server;
  // A chart is that of an actor; a client registers none besides.
  const program = { ...inside, machines: () => [], info: { name, version, title }, remote: true };
  const settings = { port: 0, token: newToken(), maxViewers: 16, history: true, redact: {}, connect: () => undefined };
  const controller: ControllerOf = (redactor, end) =>
    new Controller({ inside, reach: { client, questions }, redactor, version: packageVersion(), end });
  const catalogue = (redactor: Redactor): CatalogueReader =>
    new CatalogueReader({
      server: listing,
      introduction: () => listing.introduction(),
      limits: {},
      revisions: [revision],
      redactor,
    });
  const open = new Inspecting(program, controller, settings, { catalogue });
  await open.listen(inside.clock, () => {});
  return open;
}

type ControllerOf = (
  redactor: Redactor,
  end: (connection: string, reason: string) => void,
  traffic: EventTraffic | undefined,
) => Controller;

/**
 * Records a server into a file until the recorder or the server closes. The page opens the file, also after the process
 * was killed.
 *
 * @throws {TypeError} for a value that is no server; and any error of opening the file
 * @example const recorder = await record(server, 'run.json');
 */
export async function record(server: Server, file: string, options: RecordingOptions = {}): Promise<Recorder> {
  const inside = insideOf(server, 'record');
  const { redact, ...kept } = options;
  const redactor = new Redactor(redact);
  const observation = observe(inside, redactor);
  const recorder = await recordInto(file, {
    ...kept,
    observation,
    catalogue: catalogueOf(server, inside, redactor),
    hello: helloOf({ ...inside, info: server.info }, false),
    stopped: (why) => inside.log('warning', `${file}: ${why}`, { event: 'inspector' }),
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= recorder.close().finally(() => observation.close());
    return closing;
  };
  try {
    await inside.open({ name: 'recorder', open() {}, close });
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}

class Inspecting implements OpenInspector, Transport {
  readonly name = 'inspector';
  readonly #program: InspectedProgram;
  readonly #controller: ControllerOf | undefined;
  readonly #options: Required<Omit<InspectorOptions, 'control'>>;
  /**
   * Shared by all: it collects the secrets that statecharts declare, and also redacts the results of controlled calls.
   */
  readonly #redactor: Redactor;
  readonly #observation: Observation;
  readonly #catalogue: CatalogueReader;
  /** Undefined for a client. */
  readonly #coverage: ProcessCoverage | undefined;
  /** Undefined for a client. */
  readonly #traffic: EventTraffic | undefined;
  readonly #viewers: Viewers;
  /** Undefined before it listens, and without control. */
  #control: Controller | undefined;
  #listener: InspectorListener | undefined;
  /** Undefined without control: the page then shows no views. */
  #frames: ViewFrames | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    program: InspectedProgram,
    controller: ControllerOf | undefined,
    options: Required<Omit<InspectorOptions, 'control'>>,
    readers: ServerReaders,
  ) {
    this.#program = program;
    this.#controller = controller;
    this.#options = options;
    this.#redactor = new Redactor(options.redact);
    this.#observation = observe(program, this.#redactor);
    this.#catalogue = readers.catalogue(this.#redactor);
    this.#coverage = readers.coverage;
    this.#traffic = readers.traffic?.(this.#redactor);
    if (options.history) this.#observation.watch(IN_ADVANCE);
    const hello = helloOf(program, controller !== undefined);
    this.#viewers = new Viewers({
      observation: this.#observation,
      clock: program.clock,
      max: options.maxViewers,
      hello: () => withConnect(hello(), options.connect(), this.#redactor),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.#listener?.port ?? this.#options.port}/#${this.#options.token}`;
  }

  /** The inspector is a transport of the server, so it learns when the server closes and can end connections. */
  open({ bus, clock }: TransportHost): Promise<void> {
    return this.listen(clock, (connection, reason) => bus.emit('connection.end', { connection, reason }));
  }

  /** @param end ends a connection of the program */
  async listen(clock: Clock, end: (connection: string, reason: string) => void): Promise<void> {
    const { port, token } = this.#options;
    const hello = helloOf(this.#program, this.#controller !== undefined);
    const files = new PageFiles();
    const log = (message: string): void =>
      this.#program.log('warning', `inspector: ${message}`, { event: 'inspector' });
    this.#control = this.#controller?.(this.#redactor, end, this.#traffic);
    this.#frames = this.#control && (await openViewFrames(() => `http://127.0.0.1:${this.#listener?.port}`));
    const frames = this.#frames?.origin;
    const routes = new InspectorRoutes({
      observation: this.#observation,
      viewers: this.#viewers,
      files,
      name: this.#program.info.name,
      controller: this.#control,
      catalogue: this.#catalogue,
      coverage: this.#coverage,
      traffic: this.#traffic,
      frames,
      recording: () => recordingOf(this.#observation, hello, this.#catalogue, this.#coverage?.frame()),
      log,
    });
    this.#listener = await listen({ port, token, clock, files, routes, frames, log });
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#control?.close();
    this.#observation.flushAll();
    this.#viewers.close('the server is stopping');
    this.#observation.close();
    this.#coverage?.close();
    await this.#frames?.close();
    await this.#listener?.close();
  }
}

function catalogueOf(server: Server, { introduction, limits }: Internals, redactor: Redactor): CatalogueReader {
  return new CatalogueReader({ server, introduction, limits, redactor });
}

type Observed = Pick<Internals, 'inspection' | 'clock' | 'log' | 'machines'>;

function observe({ inspection, clock, machines, log }: Observed, redactor: Redactor): Observation {
  let faults = 0;
  const failed = (error: unknown): void => {
    faults += 1;
    // The same fault may occur thirty times a second.
    if (faults <= MAX_FAULTS)
      log('error', `the inspector failed; the server continues: ${stackOf(error)}`, errorFields('inspector', error));
  };
  return new Observation({ inspection, clock, redactor, machines, failed });
}

function helloOf({ info, clock, remote }: InspectedProgram, control: boolean): () => HelloFrame {
  const { name, version, title } = info;
  const epoch = clock.date() - clock.now();
  const troupe = packageVersion();
  const node = nameOfNode();
  return () => ({
    type: 'hello',
    format: FORMAT,
    server: { name, version, ...(title === undefined ? {} : { title }) },
    troupe,
    pid: process.pid,
    ...(node === undefined ? {} : { node }),
    epoch,
    now: clock.now(),
    ...(remote === undefined ? {} : { remote }),
    control,
    live: true,
  });
}

/** A recording has no {@link HelloFrame.connect}: paths of this machine are of no use to its readers. */
function withConnect(hello: HelloFrame, help: ConnectHelp | undefined, redactor: Redactor): HelloFrame {
  if (!help) return hello;
  const shown = (text: string): string =>
    text
      .split(PLACEHOLDER)
      .map((part) => redactor.words(part, MAX_ENTRY))
      .join(PLACEHOLDER);
  const ways = help.ways.map((way) => ({ ...way, text: shown(way.text) }));
  return { ...hello, connect: { note: help.note, ways } };
}

function insideOf(server: unknown, caller: string): Internals {
  if (isServer(server)) return server[INTERNALS];
  throw new TypeError(`${caller}: expected a server from createServer, got ${describe(server)}`);
}
