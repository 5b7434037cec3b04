/** `--inspect` and `--record`: opens the inspector of the server that a command serves, and says where; writes down what happens in it. */
import { systemClock, type Timer } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';
import type { Server } from '../../server.ts';
import { say } from '../usage.ts';
import { openBrowser } from './browser.ts';
import type { Inspecting } from './inspecting-options.ts';
import { registerInspector } from './inspector-registry.ts';

/** Where an inspector shall be: where it was in the process before this one. */
export interface InspectedProcess {
  /** There was a process before this one. */
  readonly again: boolean;
  /** 0: anywhere. */
  readonly port: number;
  readonly token: string;
}

/** How long a server may wait for it, in milliseconds: the file may be a pipe that nobody reads. */
const OPEN_MS = 2_000;

export interface InspectOptions extends Inspecting {
  readonly command: string;
  /** The file or directory that is served. */
  readonly target: string;
  /** Where it was in the process before, which has said so: settled when that has let go of it. */
  readonly place?: Promise<InspectedProcess> | undefined;
  /** Hears which port it has. */
  onPort?(port: number): void;
}

/**
 * Opens what is asked for, before the server listens, so that nothing is missed. Never throws, and takes no longer than a
 * server may wait for it: what cannot be opened is said, and the server serves all the same.
 */
export async function inspect(server: Server, options: InspectOptions): Promise<void> {
  const { command, record } = options;
  const open = async (): Promise<void> => {
    const place = await options.place;
    if (record !== undefined)
      await attempt(`troupe ${command}: --record`, () => startRecording(server, record, place?.again ?? false));
    if (options.inspect) await attempt(`troupe ${command}: --inspect`, () => startInspector(server, options, place));
  };
  let late: Timer | undefined;
  const patience = new Promise<void>((resolve) => {
    late = systemClock.after(OPEN_MS, resolve);
  });
  await Promise.race([open(), patience]);
  late?.cancel();
}

async function attempt(what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    say(`${what}: ${messageOf(error)}`);
  }
}

async function startInspector(
  server: Server,
  options: InspectOptions,
  place: InspectedProcess | undefined,
): Promise<void> {
  const { command, control, target } = options;
  const { openInspector } = await import('../../inspector/open-inspector.ts');
  const open = (port: number) =>
    openInspector(server, { port, control, ...(place === undefined ? {} : { token: place.token }) });
  const inspector = await openAt(place?.port ?? 0, open);
  const { port } = new URL(inspector.url);
  if (Number(port) !== place?.port)
    say(`troupe ${command}: inspector at ${inspector.url}${control ? ' (it may control the server)' : ''}`);
  options.onPort?.(Number(port));
  if (options.open) openBrowser(command, inspector.url);
  await attempt(`troupe ${command}: troupe top cannot find it`, async () => {
    const { name, version } = server.info;
    const takeBack = registerInspector({ pid: process.pid, url: inspector.url, server: `${name} ${version}`, target });
    process.on('exit', takeBack);
  });
}

/** Where it was, unless another program has taken that port meanwhile. */
async function openAt<T>(port: number, open: (port: number) => Promise<T>): Promise<T> {
  try {
    return await open(port);
  } catch (error) {
    if (port === 0) throw error;
    return open(0);
  }
}

async function startRecording(server: Server, file: string, append: boolean): Promise<void> {
  const { record } = await import('../../inspector/open-inspector.ts');
  await record(server, file, { append });
}
