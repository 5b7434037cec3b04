/** Connects a program with the command that loads it: `troupe run`, `serve` and `dev` intercept the program's `server.listen(…)` here. */
import { processWide } from '../kernel/global-registry.ts';
import type { OperatorLog } from '../kernel/operator-log.ts';
import type { Store } from '../store/store.ts';
import type { Transport } from '../transports/transport.ts';

export interface Launcher {
  /**
   * The program calls `listen` on a server.
   *
   * @param server a `Server` of any copy of this package
   * @returns a promise if the launcher serves on its behalf; undefined if the server must listen itself
   */
  listens(server: object, transports: readonly Transport[]): Promise<void> | undefined;
  /** The servers of the program open nothing, also before they listen: the launcher serves in their place. */
  readonly servesInstead?: true;
  /** The program discovers modules in these absolute paths. */
  reads(paths: readonly string[]): void;
  /** A server of the program closes. @param reason such as `stdin ended` @param by the origin of the request to close */
  closes?(reason: string, by: 'program' | 'transport'): void;
  /** The end of the previous process that served the program; undefined if unknown. */
  previous?(): PreviousProcess | undefined;
  /** The log of servers without a log of their own; undefined for lines on stderr. */
  readonly log?: OperatorLog | undefined;
  /** The text of the page whose source is at this path; undefined if the page that `troupe build` made is used. */
  page?(source: string): string | undefined;
  /** The store for servers without a store of their own, if any. */
  store?(): Store | undefined;
  /** The option `cluster` for servers without one, if any. */
  cluster?(): { readonly listen: string; readonly secret: string } | undefined;
}

export interface PreviousProcess {
  readonly pid: number;
  /** True if the process failed; false if it was killed from outside. */
  readonly crashed: boolean;
}

const current = processWide('troupe.dev.host', (): { launcher?: Launcher | undefined } => ({}));

/** Returns the command that has loaded the program, if any. */
export function launcher(): Launcher | undefined {
  return current.launcher;
}

/** Registers the command that loads the program; undefined for none. A process has at most one. */
export function launchedBy(launcher: Launcher | undefined): void {
  current.launcher = launcher;
}
