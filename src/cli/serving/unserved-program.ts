/** Loads a program without serving it: its servers, and what its modules export. */
import { systemClock } from '../../core/kernel/clock.ts';
import { type Launcher, launchedBy } from '../../core/server/launcher.ts';
import { withDeepStacks } from '../../features/discovery/deep-stacks.ts';
import { type Exports, loadModule } from '../../features/discovery/load-module.ts';
import { findModules } from '../../features/discovery/module-files.ts';
import { isServer, type Server } from '../../features/server/server.ts';
import type { Target } from './target.ts';

/** Maximum wait in milliseconds for a program without a wanted export to call `server.listen`. */
const LISTEN_MS = 1_000;

interface UnservedProgram {
  readonly servers: readonly Server[];
  /** The exports, with the file and the name of each. */
  readonly exported: readonly (readonly [file: string, name: string, value: unknown])[];
}

/**
 * @param wanted true for an export with which the program need not call `server.listen`
 * @param page see {@link Launcher}
 * @throws the error of a module that fails to load
 */
export async function loadUnserved(
  { path, kind }: Target,
  wanted: (value: unknown) => boolean,
  page?: NonNullable<Launcher['page']>,
): Promise<UnservedProgram> {
  const servers: Server[] = [];
  const listening = new Promise<void>((resolve) => {
    launchedBy({
      listens(server) {
        if (isServer(server)) servers.push(server);
        resolve();
        // Never resolves: the program must not continue as if its server listened.
        return new Promise(() => {});
      },
      reads() {},
      servesInstead: true,
      ...(page ? { page } : {}),
    });
  });
  const files = kind === 'file' ? [path] : (await findModules(path)).files;
  const loaded: (readonly [string, Exports])[] = [];
  for (const file of files) {
    const exports = await withDeepStacks(() => Promise.race([loadModule(file, 0), listening.then(() => undefined)]));
    if (exports) loaded.push([file, exports]);
  }
  const exported = loaded.flatMap(([file, exports]) =>
    Object.entries(exports).map(([name, value]) => [file, name, value] as const),
  );
  for (const [, , value] of exported) if (isServer(value)) servers.push(value);
  if (servers.length === 0 && !exported.some(([, , value]) => wanted(value))) {
    const hold = systemClock.hold();
    await Promise.race([listening, new Promise<void>((resolve) => systemClock.after(LISTEN_MS, resolve))]);
    hold.cancel();
  }
  return { servers, exported };
}
