/** `.env` beside a program: variables for development, which never replace those of the environment. */
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { parseEnv } from 'node:util';
import { messageOf } from '../../core/protocol/json.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { CommandIo, Environment } from '../command-io.ts';
import { say, UsageError } from '../usage.ts';
import type { Target } from './target.ts';

/** The option of run, dev and serve. */
export const ENV_OPTION = { 'no-env-file': '' } as const;

/** Its part of the help of these commands. */
export const ENV_HELP = `  --no-env-file          do not read .env beside FILE. Its variables are set
                         unless the environment has them already`;

/** Bytes of such a file. */
const MAX_BYTES = 1_048_576;
/** Names that a line on stderr shows. */
const MAX_SHOWN = 20;

/** The variables of a file, and those of the environment. */
interface EnvFile {
  /** The environment with the variables that it lacked. */
  readonly env: Environment;
  /** Sets these variables for the program, and says on stderr which they are, never their values. */
  apply(): void;
}

/**
 * Reads `.env` beside the program of a target, if it exists and `--no-env-file` is absent.
 *
 * @throws {UsageError} for a file that cannot be read, is longer than 1 MiB or is no file
 */
export function readEnvBeside(
  command: string,
  { path, kind }: Target,
  { 'no-env-file': disabled }: Readonly<Record<string, string | undefined>>,
  io: Pick<CommandIo, 'cwd' | 'env' | 'setVariable'>,
): EnvFile {
  const file = join(kind === 'directory' ? path : dirname(path), '.env');
  const found = disabled === undefined ? statSync(file, { throwIfNoEntry: false }) : undefined;
  if (!found) return { env: io.env, apply() {} };
  const { variables, wrong } = variablesOf(`troupe ${command}: .env`, file);
  const read = Object.entries(variables);
  const added = read.filter(([name]) => io.env[name] === undefined);
  const others = read.filter(([name]) => io.env[name] !== undefined);
  return {
    env: { ...io.env, ...Object.fromEntries(added) },
    apply() {
      for (const [name, value] of added) io.setVariable(name, value);
      const names = (list: typeof read): string => shownNames(list.map(([name]) => name));
      const kept = others.length === 0 ? '' : `; the environment has ${names(others)}, and wins`;
      const omitted = wrong.length === 0 ? '' : `; left out, because they are no variables: ${shownNames(wrong)}`;
      say(
        `troupe ${command}: read ${visibleLine(shownPath(file, io.cwd))}: ${added.length === 0 ? 'nothing new' : names(added)}${kept}${omitted}`,
      );
    },
  };
}

/**
 * Reads a file of lines such as `NAME=value`, as `node --env-file` does.
 *
 * @returns the variables, and the names of lines that are none
 * @param where names the option in errors
 * @throws {UsageError} for a file that cannot be read, is longer than 1 MiB or is no file
 */
export function variablesOf(
  where: string,
  file: string,
): { readonly variables: Readonly<Record<string, string>>; readonly wrong: readonly string[] } {
  try {
    const found = statSync(file);
    if (!found.isFile()) throw new Error('it is a folder, a pipe or a device');
    if (found.size > MAX_BYTES) throw new Error(`it has ${found.size} bytes`);
    const variables: Record<string, string> = {};
    const wrong: string[] = [];
    for (const [name, value = ''] of Object.entries(parseEnv(readFileSync(file, 'utf8').replace(/^\ufeff/, ''))))
      if (isVariable(name) && !value.includes('\0')) variables[name] = value;
      else wrong.push(name);
    return { variables, wrong };
  } catch (error) {
    throw new UsageError(
      `${where}: expected a readable file of at most ${MAX_BYTES} bytes with lines such as NAME=value, got ${file}: ${messageOf(error)}`,
    );
  }
}

/** True for the name of a variable as shells and files write it. */
export function isVariable(name: string): boolean {
  return /^[A-Za-z_][\w.-]*$/.test(name);
}

function shownNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_SHOWN).map((name) => visibleLine(name));
  const more = names.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function shownPath(file: string, cwd: string): string {
  const short = relative(cwd, file);
  return short.startsWith('..') ? file : short;
}
