/** `troupe graph FILE|DIR [MACHINE]`: prints a statechart of a program as a picture, as Mermaid, or as a table. It serves nothing. */
import { writeFileSync } from 'node:fs';
import type { AnyStateMachine } from 'xstate';
import { messageOf } from '../../protocol/json.ts';
import { reserveStdout } from '../../transports/stdout-guard.ts';
import { readOptions } from '../command-options.ts';
import { machinesOf } from '../serving/program-machines.ts';
import { hearStrayErrors } from '../serving/stray-errors.ts';
import { readTarget, type Target } from '../serving/target.ts';
import { startupError } from '../startup-error.ts';
import { say, UsageError } from '../usage.ts';

const OPTIONS = { mermaid: '', table: '', out: 'FILE' };

const HELP = `Usage: troupe graph FILE|DIR [MACHINE] [--mermaid | --table] [--out FILE] [-- ARGS]

Prints the statechart of a machine on stdout, as an SVG picture. Without MACHINE: of the only one there is, or else the
names of all. The modules are loaded, and nothing is served.

  --mermaid    as a stateDiagram-v2 of Mermaid, which READMEs and wikis draw
  --table      as a table in Markdown: a row for each transition, with what its author says of it
  --out FILE   write it to FILE

MACHINE is what the program calls it: server.machine('order', …), defineMachine({ name: 'order', … }), a tool that is a
machine, or the name under which a module exports it.
ARGS are what FILE finds in process.argv.slice(2).
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('graph', args, OPTIONS);
  if (!line) return void process.stdout.write(HELP);
  const { values, positionals, rest } = line;
  const [file, wanted, ...more] = positionals;
  if (more.length > 0)
    throw new UsageError(
      `troupe graph: expected FILE and MACHINE, got ${positionals.length}: ${positionals.join(' ')}`,
    );
  if (values.mermaid !== undefined && values.table !== undefined)
    throw new UsageError('troupe graph: expected --mermaid or --table, got both');
  const target = readTarget('graph', [...(file === undefined ? [] : [file]), '--', ...rest]);
  if (!target) return void process.stdout.write(HELP);
  // What the program says while it loads is no part of the picture.
  const { write } = reserveStdout();
  const code = await print(
    target,
    wanted,
    values,
    (text) => new Promise((resolve) => void write(text, () => resolve())),
  );
  // What the program has begun to do keeps nobody.
  process.stderr.write('', () => process.exit(code));
}

async function print(
  target: Target,
  wanted: string | undefined,
  { mermaid, table, out }: Readonly<Record<string, string | undefined>>,
  write: (text: string) => Promise<void>,
): Promise<number> {
  try {
    const machines = await Promise.race([machinesOf(target), hearStrayErrors().thrown]);
    const chosen = choose(target, machines, wanted);
    if (!chosen && out !== undefined)
      return fail(`--out: expected a MACHINE to write there, one of ${[...machines.keys()].join(', ')}; got none`);
    if (!chosen) {
      await write(`${[...machines.keys()].join('\n')}\n`);
      return 0;
    }
    const text = await textOf(chosen, mermaid !== undefined ? 'mermaid' : table !== undefined ? 'table' : 'picture');
    if (out === undefined) await write(text);
    else save(out, text);
    return 0;
  } catch (error) {
    return error instanceof Missing
      ? fail(error.message)
      : fail(`${target.path} cannot be read: ${startupError(error, target.path)}`, 1);
  }
}

function save(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new Missing(`--out: expected a file that can be written, got ${file}: ${messageOf(error)}`);
  }
}

/** What was asked for cannot be done: there is no such machine, or no such file. */
class Missing extends Error {}

interface Chosen {
  readonly name: string;
  readonly machine: AnyStateMachine;
}

/** @returns undefined when there are several, and none is named */
function choose(
  { path }: Target,
  machines: ReadonlyMap<string, AnyStateMachine>,
  wanted: string | undefined,
): Chosen | undefined {
  const [only, ...more] = machines;
  if (!only)
    throw new Missing(
      `${path} has no machine: expected a server with server.machine(…), defineMachine(…), a tool that is a machine, or an exported XState machine`,
    );
  if (wanted === undefined) return more.length === 0 ? { name: only[0], machine: only[1] } : undefined;
  const machine = machines.get(wanted) ?? [...machines.values()].find(({ id }) => id === wanted);
  if (!machine) throw new Missing(`expected one of the machines ${[...machines.keys()].join(', ')}, got ${wanted}`);
  return { name: wanted, machine };
}

async function textOf({ name, machine }: Chosen, form: 'picture' | 'mermaid' | 'table'): Promise<string> {
  const { readChart } = await import('../../charts/chart.ts');
  const chart = readChart(machine);
  switch (form) {
    case 'mermaid':
      return (await import('../../charts/mermaid.ts')).toMermaid(chart);
    case 'table':
      return (await import('../../charts/table.ts')).toTable(chart);
    case 'picture':
      return `${(await import('../../charts/picture.ts')).drawChart(chart, `The statechart ${name}`, [])}\n`;
  }
}

/** @returns the exit code */
function fail(why: string, code = 2): number {
  say(`troupe graph: ${why}`);
  return code;
}
