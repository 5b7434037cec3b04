/** Replaces the variables in the texts of a configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:ID}`, `{env:VAR}`, `$VAR` and the directories of editors. */

export interface VariableSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The directory of `${workspaceFolder}`. */
  readonly folder: string;
  /** The directory of `${userHome}`. */
  readonly home: string;
  readonly separator: string;
  /** @returns the value of an input of VS Code; undefined if it has none */
  input(id: string): string | undefined;
}

/** A variable cannot be replaced. */
class VariableError extends Error {
  override readonly name = 'VariableError';
}

/**
 * opencode writes `{env:NAME}`, without the sign. Gemini CLI, Crush and GitHub Copilot write `$NAME`, and mcporter `$env:NAME`: a
 * whole word in capitals, because a `$` occurs in passwords, too.
 */
const VARIABLE = /\$\{([^{}]*)\}|\{(env:[A-Za-z_][A-Za-z0-9_]*)\}|(?<!\S)\$(?:env:)?([A-Z_][A-Z0-9_]*)(?!\S)/g;
/** Claude Code and Gemini CLI set these to the directory of the file. */
const FILE_DIRECTORIES: ReadonlySet<string> = new Set(['CLAUDE_PLUGIN_ROOT', 'CLAUDE_PROJECT_DIR', 'extensionPath']);

/**
 * Replaces the variables of a text once: a value that contains `${…}` is not expanded again.
 *
 * @param onBare called for each `$NAME` that is not set, and stays as it is. Without it, `$NAME` is no variable, as in the arguments of a shell
 * @throws {VariableError} for a variable that is not set, or that only an editor can replace
 * @example expandVariables('Bearer ${TOKEN:-none}', variables) // 'Bearer none'
 */
export function expandVariables(text: string, variables: VariableSource, onBare?: () => void): string {
  const { environment } = variables;
  return text.replace(VARIABLE, (written, inside?: string, other?: string, bare?: string) => {
    if (bare === undefined) return replacement(written, inside ?? other ?? '', variables);
    const value = Object.hasOwn(environment, bare) ? environment[bare] : undefined;
    if (onBare && value === undefined) onBare();
    return (onBare && value) ?? written;
  });
}

/**
 * Replaces `~` at the start of a path by the home directory, as VS Code does. `~name`, the directory of another user, stays as
 * it is.
 *
 * @example expandHome('~/notes', variables) // '/home/ada/notes'
 */
export function expandHome(path: string, { home, separator }: Pick<VariableSource, 'home' | 'separator'>): string {
  const isAtHome = path === '~' || path.startsWith('~/') || path.startsWith(`~${separator}`);
  return isAtHome ? `${home}${path.slice(1)}` : path;
}

/**
 * The environment variable of an input: that of its id, or one that a shell can set.
 *
 * @example variableOf('api-key') // 'API_KEY'
 */
export function variableOf(input: string): string {
  return /^\w+$/.test(input) ? input : input.toUpperCase().replace(/\W/g, '_');
}

function replacement(
  written: string,
  inside: string,
  { environment, folder, home, input, separator }: VariableSource,
): string {
  if (inside.startsWith('input:')) {
    const id = inside.slice('input:'.length);
    const value = input(id);
    if (value !== undefined) return value;
    throw new VariableError(
      `${written}: no value. Set the environment variable ${variableOf(id)}, or start the gateway over HTTP on a terminal, where it asks`,
    );
  }
  switch (inside) {
    case 'workspaceFolder':
      return folder;
    case 'workspaceFolderBasename':
      return folder.split(/[/\\]/).at(-1) ?? '';
    case 'userHome':
      return home;
    case 'pathSeparator':
    case '/':
      return separator;
  }
  const [, name, fallback] = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/.exec(inside) ?? [];
  if (name === undefined)
    throw new VariableError(
      `${written}: expected \${NAME}, \${NAME:-default} or \${env:NAME} with the name of an environment variable`,
    );
  const set = Object.hasOwn(environment, name) ? environment[name] : undefined;
  const value = set ?? (FILE_DIRECTORIES.has(name) ? folder : undefined);
  // As shells do, an empty variable gets the default, too.
  if (fallback !== undefined) return value || fallback;
  if (value === undefined) throw new VariableError(`the environment variable ${name} is not set`);
  return value;
}
