/** `troupe build FILE|DIR`: bundles the views of a program, each into one HTML file beside its script. */
import { relative } from 'node:path';
import { gzipSync } from 'node:zlib';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { builtPath, entryPath } from '../../features/apps/app-page.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { catchStrayErrors } from '../serving/stray-errors.ts';
import { passArguments, readTarget, type Target } from '../serving/target.ts';
import { loadUnserved } from '../serving/unserved-program.ts';
import { startupError } from '../startup-error.ts';
import { print, say, UsageError } from '../usage.ts';
import { bundleView } from '../views/bundle-view.ts';

const HELP = `Usage: troupe build FILE|DIR [-- ARGS]

Bundles the views of a program: the entry of each server.app(name, { entry }) and
all that it imports become one HTML file beside it, such as ui/board.view.html
for ui/board.tsx. The program is loaded but not served. Needs the package vite.

ARGS are passed to FILE as process.argv.slice(2).
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('build', args, {});
  if (!line) return print(io, HELP);
  const { positionals, rest } = line;
  if (positionals.length > 1)
    throw new UsageError(`troupe build: expected FILE or DIR, got ${positionals.length}: ${positionals.join(' ')}`);
  const target = readTarget('build', [...positionals, '--', ...rest], io);
  if (!target) return print(io, HELP);
  // Output of the program while it loads goes to stderr.
  const write = io.reserveStdout();
  passArguments(target, rest);
  return build(target, write, io);
}

/** @returns the exit code */
async function build(target: Target, write: (text: string) => Promise<void>, { cwd }: CommandIo): Promise<number> {
  const stray = catchStrayErrors();
  let sources: readonly string[];
  try {
    sources = await Promise.race([sourcesOf(target), stray.thrown]);
  } catch (error) {
    say(`troupe build: cannot load ${target.path}: ${startupError(error, target.path)}`, 'error');
    return 1;
  } finally {
    stray.end();
  }
  if (sources.length === 0) await write(`${target.path} has no view with an entry\n`);
  let code = 0;
  for (const source of sources) {
    try {
      const { html } = await bundleView(source, 'production');
      const file = builtPath(source);
      // Renamed, so that a server that starts meanwhile reads a whole page.
      replaceFile(file, html);
      const size = `${html.length} bytes, ${gzipSync(html, { level: 9 }).length} gzipped`;
      await write(`${relative(cwd, file)} (${size})\n`);
    } catch (error) {
      say(`troupe build: ${relative(cwd, source)}: ${startupError(error, source)}`, 'error');
      code = 1;
    }
  }
  return code;
}

/** The scripts of the views of a program. */
async function sourcesOf(target: Target): Promise<readonly string[]> {
  // A page that is not built yet must not stop the program.
  const page = (): string => '<!doctype html>';
  const { servers } = await loadUnserved(target, () => false, page);
  const entries = servers.flatMap(({ apps }) => apps.definitions().flatMap(({ entry }) => entry ?? []));
  return [...new Set(entries.map(entryPath))];
}
