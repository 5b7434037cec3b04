/** `troupe graph FILE|DIR [MACHINE]`: prints a statechart of a program as a picture, as Mermaid, or as a table. It does not serve the program. */
import type { AnyStateMachine } from 'xstate';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { machinesOf } from '../serving/program-machines.ts';
import { catchStrayErrors } from '../serving/stray-errors.ts';
import { passArguments, readTarget, type Target } from '../serving/target.ts';
import { startupError } from '../startup-error.ts';
import { print, say, UsageError } from '../usage.ts';

const OPTIONS = { mermaid: '', table: '', out: 'FILE' };

/** Time limit of a layout. A picture that is written to a repository changes only with its machine, so the command waits long. */
const PICTURE_MS = 20_000;

const HELP = `Usage: troupe graph FILE|DIR [MACHINE] [--mermaid | --table] [--out FILE] [-- ARGS]

Prints the statechart of a machine as an SVG picture. Without MACHINE, prints
the only machine, or the names of all. The program is loaded but not served.

  --mermaid              print a Mermaid stateDiagram-v2, for READMEs and wikis
  --table                print a Markdown table with one row per transition and
                         its description
  --out FILE             write to FILE instead of stdout

MACHINE is a name from server.machine('order', …), defineMachine({ name: 'order',
… }) or a tool with a machine, or the name under which a module exports it.
ARGS are passed to FILE as process.argv.slice(2).
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('graph', args, OPTIONS);
  if (!line) return print(io, HELP);
  const { values, positionals, rest } = line;
  const [file, wanted, ...more] = positionals;
  if (more.length > 0)
    throw new UsageError(
      `troupe graph: expected FILE and MACHINE, got ${positionals.length}: ${positionals.join(' ')}`,
    );
  if (values.mermaid !== undefined && values.table !== undefined)
    throw new UsageError('troupe graph: expected --mermaid or --table, got both');
  const target = readTarget('graph', [...(file === undefined ? [] : [file]), '--', ...rest], io);
  if (!target) return print(io, HELP);
  // Output of the program while it loads goes to stderr, not into the picture.
  const write = io.reserveStdout();
  passArguments(target, rest);
  return show(target, wanted, values, write, io);
}

async function show(
  target: Target,
  wanted: string | undefined,
  { mermaid, table, out }: Readonly<Record<string, string | undefined>>,
  write: (text: string) => Promise<void>,
  io: CommandIo,
): Promise<number> {
  const stray = catchStrayErrors();
  try {
    const machines = await Promise.race([machinesOf(target), stray.thrown]);
    const chosen = choose(target, machines, wanted);
    if (!chosen && out !== undefined)
      return fail(`--out: expected a MACHINE, one of ${[...machines.keys()].join(', ')}, got none`);
    if (!chosen) {
      await write(`${[...machines.keys()].join('\n')}\n`);
      return 0;
    }
    const text = await textOf(
      chosen,
      mermaid !== undefined ? 'mermaid' : table !== undefined ? 'table' : 'picture',
      io,
    );
    if (out === undefined) await write(text);
    else save(out, text, io);
    return 0;
  } catch (error) {
    return error instanceof GraphError
      ? fail(error.message)
      : fail(`cannot load ${target.path}: ${startupError(error, target.path)}`, 1);
  } finally {
    stray.end();
  }
}

function save(file: string, text: string, io: CommandIo): void {
  try {
    replaceFile(absolutePath(io, file), text);
  } catch (error) {
    throw new GraphError(`--out: expected a writable file, got ${file}: ${messageOf(error)}`);
  }
}

/** The requested machine does not exist, or the output file is not writable. */
class GraphError extends Error {}

interface Chosen {
  readonly name: string;
  readonly machine: AnyStateMachine;
}

/** @returns undefined if there are several machines and `wanted` names none */
function choose(
  { path }: Target,
  machines: ReadonlyMap<string, AnyStateMachine>,
  wanted: string | undefined,
): Chosen | undefined {
  const [only, ...more] = machines;
  if (!only)
    throw new GraphError(
      `${path} has no machine: expected a server with server.machine(…), a defineMachine(…), a tool with a machine, or an exported XState machine`,
    );
  if (wanted === undefined) return more.length === 0 ? { name: only[0], machine: only[1] } : undefined;
  const machine = machines.get(wanted) ?? [...machines.values()].find(({ id }) => id === wanted);
  if (!machine) throw new GraphError(`expected one of the machines ${[...machines.keys()].join(', ')}, got ${wanted}`);
  return { name: wanted, machine };
}

async function textOf(
  { name, machine }: Chosen,
  form: 'picture' | 'mermaid' | 'table',
  { clock }: CommandIo,
): Promise<string> {
  const { readChart } = await import('../../core/kernel/charts/chart.ts');
  const chart = readChart(machine);
  switch (form) {
    case 'mermaid':
      return (await import('../../features/charts/mermaid.ts')).toMermaid(chart);
    case 'table':
      return (await import('../../core/kernel/charts/table.ts')).toTable(chart);
    case 'picture': {
      const { pictureOf } = await import('../../features/charts/chart-picture.ts');
      const options = { title: `The statechart ${name}`, active: [], clock, waitMs: PICTURE_MS };
      return `${await pictureOf(chart, options)}\n`;
    }
  }
}

/** @returns the exit code */
function fail(why: string, code = 2): number {
  say(`troupe graph: ${why}`);
  return code;
}
