/** The configuration files of MCP clients: where each client reads its servers, and how an entry is added or removed. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { CommentedJsonError, readCommentedJson } from '../../core/codec/commented-json.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { isJsonObject, isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import type { CommandIo } from '../command-io.ts';
import { withEntry } from './json-edit.ts';
import { type TomlTable, tomlTable, withTomlTable } from './toml-edit.ts';
import { withYamlEntry, yamlEntry } from './yaml-edit.ts';

/** The directory and the environment that determine the files. */
type ConfigPlace = Pick<CommandIo, 'cwd' | 'env'>;

/** An entry that starts a server. Clients start it in another directory, so every path is absolute. */
export interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
  /** Variables that the client sets. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The form of a client's file. */
interface ConfigForm {
  /** The member that contains the servers. */
  readonly member: string;
  /** The entry as the client reads it. @param name its name */
  shaped(entry: ServerEntry, name: string): ShapedEntry;
  /** The text of a file that contains the entry only. */
  shown(member: string, name: string, entry: ShapedEntry): string;
  /**
   * Sets or removes an entry of a text.
   *
   * @throws {Error} for a text of another form, with its place if that is known
   */
  edited(text: string, member: string, name: string, entry: ShapedEntry | undefined): EditedText | Promise<EditedText>;
}

type ShapedEntry = Readonly<
  Record<string, string | number | boolean | readonly string[] | Readonly<Record<string, string>>>
>;

interface EditedText {
  readonly text: string;
  /** The entry was there. */
  readonly present: boolean;
}

/** A client that reads its servers from a file. */
export interface ConfiguredClient {
  readonly id: string;
  readonly title: string;
  readonly form: ConfigForm;
  /** The file; undefined where the client does not exist on this platform. */
  file(place: ConfigPlace): string | undefined;
  /** The file belongs to this directory, which may be in a repository. */
  readonly shared?: true;
  /** The next step of the person after a change. */
  readonly next: string;
}

const json: Pick<ConfigForm, 'shown' | 'edited'> = {
  shown: (member, name, entry) => JSON.stringify({ [member]: { [name]: entry } }, undefined, 2),
  edited(text, member, name, entry) {
    const servers = readConfig(text)[member] ?? {};
    if (!isJsonObject(servers)) throw new Error(`${member}: expected an object`);
    const present = Object.hasOwn(servers, name);
    return { text: withEntry(text, member, name, entry && plainJson(entry)), present };
  },
};

const toml: Pick<ConfigForm, 'shown' | 'edited'> = {
  shown: (member, name, entry) => tomlTable(member, name, tableOf(entry)).trimEnd(),
  edited: (text, member, name, entry) => withTomlTable(text, member, name, entry && tableOf(entry)),
};

const yaml: Pick<ConfigForm, 'shown' | 'edited'> = {
  shown: (member, name, entry) => yamlEntry(member, name, plainJson(entry)),
  edited: (text, member, name, entry) => withYamlEntry(text, member, name, entry && plainJson(entry)),
};

function plainJson(entry: ShapedEntry): JsonObject {
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [
      key,
      isList(value) ? [...value] : isVariables(value) ? { ...value } : value,
    ]),
  );
}

function tableOf(entry: ShapedEntry): TomlTable {
  return Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [key, isList(value) || isVariables(value) ? value : String(value)]),
  );
}

function isList(value: ShapedEntry[string]): value is readonly string[] {
  return Array.isArray(value);
}

function isVariables(value: ShapedEntry[string]): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && !isList(value);
}

/** `command`, `args` and `env`, as most clients read them. */
function usual({ command, args, env }: ServerEntry): ShapedEntry {
  return { command, args, ...(env && { env }) };
}

export const MCP_SERVERS: ConfigForm = { ...json, member: 'mcpServers', shaped: usual };

/** The forms of clients that have one of their own. */
const VSCODE: ConfigForm = { ...json, member: 'servers', shaped: (entry) => ({ type: 'stdio', ...usual(entry) }) };
const ZED: ConfigForm = { ...json, member: 'context_servers', shaped: usual };
const OPENCODE: ConfigForm = {
  ...json,
  member: 'mcp',
  shaped: ({ command, args, env }) => ({
    type: 'local',
    command: [command, ...args],
    enabled: true,
    ...(env && { environment: env }),
  }),
};
const CODEX: ConfigForm = { ...toml, member: 'mcp_servers', shaped: usual };
const GOOSE: ConfigForm = {
  ...yaml,
  member: 'extensions',
  shaped: ({ command, args, env = {} }, name) => ({
    ...{ name, type: 'stdio', enabled: true, cmd: command, args },
    ...{ envs: env, timeout: GOOSE_SECONDS },
  }),
};

/** The timeout that Goose writes itself. */
const GOOSE_SECONDS = 300;

function home({ env }: ConfigPlace, ...path: string[]): string {
  const { HOME, USERPROFILE } = env;
  return join((process.platform === 'win32' ? USERPROFILE : HOME) ?? homedir(), ...path);
}

/** The directory in which desktop programs keep their settings. */
function settings(place: ConfigPlace, ...path: string[]): string {
  const { APPDATA, XDG_CONFIG_HOME } = place.env;
  if (process.platform === 'darwin') return home(place, 'Library', 'Application Support', ...path);
  if (process.platform === 'win32') return join(APPDATA ?? home(place, 'AppData', 'Roaming'), ...path);
  return join(XDG_CONFIG_HOME ?? home(place, '.config'), ...path);
}

/** The directory in which programs of a terminal keep their settings, on macOS, too. */
function xdg(place: ConfigPlace): string {
  return set(place.env.XDG_CONFIG_HOME) ?? home(place, '.config');
}

function set(variable: string | undefined): string | undefined {
  return variable === '' ? undefined : variable;
}

export const CLIENTS: readonly ConfiguredClient[] = [
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    form: MCP_SERVERS,
    file: (place) => settings(place, 'Claude', 'claude_desktop_config.json'),
    next: 'Restart Claude Desktop',
  },
  {
    id: 'claude-code',
    title: 'Claude Code, in this directory',
    form: MCP_SERVERS,
    file: ({ cwd }) => join(cwd, '.mcp.json'),
    shared: true,
    next: 'Start claude in this directory, and approve the server',
  },
  {
    id: 'cursor',
    title: 'Cursor',
    form: MCP_SERVERS,
    file: (place) => home(place, '.cursor', 'mcp.json'),
    next: 'Enable the server in the settings of Cursor',
  },
  {
    id: 'vscode',
    title: 'VS Code, in this directory',
    form: VSCODE,
    file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'),
    shared: true,
    next: 'Run "MCP: List Servers" in VS Code, and start the server',
  },
  {
    id: 'windsurf',
    title: 'Windsurf',
    form: MCP_SERVERS,
    file: (place) => home(place, '.codeium', 'windsurf', 'mcp_config.json'),
    next: 'Refresh the servers in the settings of Windsurf',
  },
  {
    id: 'codex',
    title: 'Codex',
    form: CODEX,
    file: (place) => join(set(place.env.CODEX_HOME) ?? home(place, '.codex'), 'config.toml'),
    next: 'Start codex again; /mcp lists its servers',
  },
  {
    id: 'gemini',
    title: 'Gemini CLI',
    form: MCP_SERVERS,
    file: (place) => home(place, '.gemini', 'settings.json'),
    next: 'Start gemini again; /mcp lists its servers',
  },
  {
    id: 'zed',
    title: 'Zed',
    form: ZED,
    file: (place) =>
      process.platform === 'win32' ? settings(place, 'Zed', 'settings.json') : join(xdg(place), 'zed', 'settings.json'),
    next: 'The settings of the agent in Zed show the server',
  },
  {
    id: 'opencode',
    title: 'opencode',
    form: OPENCODE,
    file(place) {
      const folder = join(xdg(place), 'opencode');
      const [plain, commented] = [join(folder, 'opencode.json'), join(folder, 'opencode.jsonc')];
      return !existsSync(plain) && existsSync(commented) ? commented : plain;
    },
    next: 'Start opencode again',
  },
  {
    id: 'goose',
    title: 'Goose',
    form: GOOSE,
    file: (place) =>
      process.platform === 'win32'
        ? settings(place, 'Block', 'goose', 'config', 'config.yaml')
        : join(home(place, '.config'), 'goose', 'config.yaml'),
    next: 'Start goose again',
  },
];

/** The name of a program's entry: that of its package, else of its file or directory. */
export function entryName(program: string): string {
  try {
    const text: unknown = JSON.parse(readFileSync(join(dirname(program), 'package.json'), 'utf8'));
    if (isObject(text) && typeof text.name === 'string' && text.name !== '') return text.name.replace(/^@[^/]*\//, '');
  } catch {
    // There is no package.json beside the program, or it is damaged: the file's name remains.
  }
  const name = basename(program, extname(program));
  return name === 'server' || name === 'index' ? basename(dirname(program)) : name;
}

/** An entry as text, in the shape that the client reads. */
export function entryText({ form }: Pick<ConfiguredClient, 'form'>, name: string, entry: ServerEntry): string {
  return form.shown(form.member, name, form.shaped(entry, name));
}

/** A change of a file, before it is made. */
interface ConfigChange {
  readonly file: string;
  readonly text: string;
  /** The text of the file when it was read; undefined without one. */
  readonly written: string | undefined;
  /** An entry of that name was there, which the change replaces or removes. */
  readonly replaces: boolean;
  /** The mode of a file that does not exist yet: one with variables is for its owner only. */
  readonly mode: number | undefined;
}

/**
 * Prepares a change of a client's file. `entry` undefined removes the entry. Comments and the layout of the file stay.
 *
 * @throws {Error} for a file of another form than the client's, or whose servers are no object
 */
export async function prepareChange(
  client: ConfiguredClient,
  name: string,
  entry: ServerEntry | undefined,
  place: ConfigPlace,
): Promise<ConfigChange | undefined> {
  const file = client.file(place);
  if (file === undefined) return undefined;
  const written = readRegular(file);
  const { member } = client.form;
  try {
    const shaped = entry && client.form.shaped(entry, name);
    const { text, present } = await client.form.edited(written ?? '', member, name, shaped);
    if (entry === undefined && !present) return undefined;
    return { file, written, text, replaces: present, mode: entry?.env ? 0o600 : undefined };
  } catch (error) {
    const at = error instanceof CommentedJsonError ? `:${error.line}:${error.column}` : '';
    throw new Error(`${file}${at}: ${messageOf(error)}. Correct the file, or add the entry by hand (--print)`);
  }
}

/** @throws {Error} for a text that is not JSON, or no object */
function readConfig(text: string): JsonObject {
  if (text.trim() === '') return {};
  const { value } = readCommentedJson(text);
  if (isJsonObject(value)) return value;
  throw new Error('expected a JSON object');
}

/**
 * Makes a change, and keeps the file as it was beside it. The file is replaced as a whole, so that a client never reads a
 * part of it.
 *
 * @returns the backup's path; undefined if the file did not exist
 * @throws {Error} if the file has changed since it was read
 */
export function applyChange({ file, text, written, mode }: ConfigChange): string | undefined {
  mkdirSync(dirname(file), { recursive: true });
  // A person may have been asked in between, and the client or another command writes its file, too.
  if (readRegular(file) !== written)
    throw new Error(`${file} has changed since it was read, and was left alone. Run the command again`);
  const backup = written === undefined ? undefined : freeName(`${file}.troupe-backup`);
  // A copy has the mode of its source.
  if (backup !== undefined) copyFileSync(file, backup, constants.COPYFILE_EXCL);
  replaceFile(file, text, { link: 'follow', ...(mode === undefined ? {} : { mode }) });
  return backup;
}

/** The text of a file; undefined without one. @throws {Error} for anything else, such as a pipe, which might never end */
function readRegular(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found && !found.isFile()) throw new Error(`${file}: expected a file, got a folder, a pipe or a device`);
  return found && readFileSync(file, 'utf8');
}

function freeName(path: string): string {
  if (!existsSync(path)) return path;
  for (let number = 1; ; number += 1) if (!existsSync(`${path}-${number}`)) return `${path}-${number}`;
}
