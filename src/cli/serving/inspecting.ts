/** `--inspect` and `--record`: opens the inspector of a served server, prints its URL, and starts the recording. */

import { openInBrowser } from '../../client/browser.ts';
import { systemClock, type Timer } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Server } from '../../features/server/server.ts';
import type { ConnectHelp } from '../../inspector/frames.ts';
import { noBrowser, say } from '../usage.ts';
import type { Inspecting } from './inspecting-options.ts';
import { registerInspector } from './inspector-registry.ts';

/** The address of an inspector that moves from one worker process to the next. */
export interface InspectorAddress {
  /** An earlier worker has served. */
  readonly restarted: boolean;
  /** 0 for any free port. */
  readonly port: number;
  readonly token: string;
}

/** Maximum time in milliseconds that a server waits for the inspector and the recording: the file may be a pipe without a reader. */
const OPEN_MS = 2_000;

interface InspectOptions extends Inspecting {
  readonly command: string;
  /** The served file or directory. */
  readonly target: string;
  /** The address under `troupe run`; resolves when the previous worker has released it. */
  readonly address?: Promise<InspectorAddress> | undefined;
  /** Returns how clients are connected; undefined for stdio. */
  connect?(): ConnectHelp | undefined;
  /** Receives the port of the inspector. */
  onPort?(port: number): void;
  /** Receives the address of the page, with its token. */
  onPage?(url: URL): void;
}

/**
 * Opens the inspector and the recording before the server listens, so that they are complete. Never throws and takes at most
 * two seconds: a failure is reported on stderr, and the server serves without the inspector.
 */
export async function inspect(server: Server, options: InspectOptions): Promise<void> {
  const { command, record } = options;
  const open = async (): Promise<void> => {
    const address = await options.address;
    if (record !== undefined)
      await attempt(`troupe ${command}: --record`, () => startRecording(server, record, address?.restarted ?? false));
    if (options.inspect) await attempt(`troupe ${command}: --inspect`, () => startInspector(server, options, address));
  };
  let timer: Timer | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = systemClock.after(OPEN_MS, resolve);
  });
  await Promise.race([open(), timeout]);
  timer?.cancel();
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
  address: InspectorAddress | undefined,
): Promise<void> {
  const { command, control, target } = options;
  const { openInspector } = await import('../../inspector/open-inspector.ts');
  const { connectHelp } = await import('../setup/connect-lines.ts');
  const connect = () => options.connect?.() ?? connectHelp(target, process.argv.slice(2));
  const open = (port: number) =>
    openInspector(server, {
      port,
      control,
      connect,
      // A developer opens the page after the first calls.
      history: command === 'dev',
      ...(address === undefined ? {} : { token: address.token }),
    });
  const inspector = await openAt(address?.port ?? 0, open);
  const { port } = new URL(inspector.url);
  if (Number(port) !== address?.port)
    say(
      `troupe ${command}: inspector at ${inspector.url}${control && command !== 'dev' ? ' (it can control the server)' : ''}`,
    );
  options.onPort?.(Number(port));
  options.onPage?.(new URL(inspector.url));
  if (options.open) openInBrowser(new URL(inspector.url), () => say(noBrowser(command)));
  await attempt(`troupe ${command}: cannot register the inspector for troupe top`, async () => {
    const { name, version } = server.info;
    const unregister = registerInspector({
      pid: process.pid,
      url: inspector.url,
      server: `${name} ${version}`,
      target,
    });
    process.on('exit', unregister);
  });
}

/** Opens at the given port, or at any free port if another program has taken it. */
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
