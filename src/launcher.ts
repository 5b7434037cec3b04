/** The door between a program and what loaded it: `troupe run` and `troupe dev` hear there that the program listens. */
import { processWide } from './global-registry.ts';
import type { Store } from './store/store.ts';
import type { Transport } from './transports/transport.ts';

export interface Launcher {
  /**
   * A server of the program is told to listen.
   *
   * @param server a `Server`, of any copy of this package
   * @returns a promise if the launcher serves on its behalf; undefined if the server shall listen itself
   */
  listens(server: object, transports: readonly Transport[]): Promise<void> | undefined;
  /** The program discovers modules under these absolute paths. */
  reads(paths: readonly string[]): void;
  /** A server of the program closes. @param reason such as `stdin ended` @param by who asked for it */
  closes?(reason: string, by: 'program' | 'transport'): void;
  /** How the process before this one ended, which served the same program; undefined where nobody knows. */
  previous?(): PreviousProcess | undefined;
  /** The store of a server that was given none of its own, if there is one for it. */
  store?(): Store | undefined;
}

export interface PreviousProcess {
  readonly pid: number;
  /** By an error of its own, and not because somebody has killed it. */
  readonly crashed: boolean;
}

const place = processWide('troupe.dev.host', (): { launcher?: Launcher } => ({}));

/** What loaded the program, if it was the CLI. */
export function launcher(): Launcher | undefined {
  return place.launcher;
}

/** Says who loads the program. There is one in a process. */
export function launchedBy(launcher: Launcher): void {
  place.launcher = launcher;
}
