/** Replaces the variables in the texts of a configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `{env:VAR}` and the directories of editors. */

export interface VariableSource {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The directory of `${workspaceFolder}`. */
  readonly folder: string;
  /** The directory of `${userHome}`. */
  readonly home: string;
  readonly separator: string;
}

/** A variable cannot be replaced. */
export class VariableError extends Error {
  override readonly name = 'VariableError';
}

/** opencode writes `{env:NAME}`, without the sign. */
const VARIABLE = /\$\{([^{}]*)\}|\{(env:[A-Za-z_][A-Za-z0-9_]*)\}/g;

/**
 * Replaces the variables of a text once: a value that contains `${…}` is not expanded again.
 *
 * @throws {VariableError} for a variable that is not set, or that only an editor can replace
 * @example expandVariables('Bearer ${TOKEN:-none}', variables) // 'Bearer none'
 */
export function expandVariables(text: string, variables: VariableSource): string {
  return text.replace(VARIABLE, (written, inside: string | undefined, other: string | undefined) =>
    replacement(written, inside ?? other ?? '', variables),
  );
}

function replacement(
  written: string,
  inside: string,
  { environment, folder, home, separator }: VariableSource,
): string {
  if (inside.startsWith('input:'))
    throw new VariableError(
      `${written}: only VS Code can ask for this value. Put it into an environment variable, and write \${env:NAME}`,
    );
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
  const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
  // As shells do, an empty variable gets the default, too.
  if (fallback !== undefined) return value || fallback;
  if (value === undefined) throw new VariableError(`the environment variable ${name} is not set`);
  return value;
}
