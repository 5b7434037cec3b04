/** The configuration files of MCP clients: where each client reads its servers, and how an entry is added or removed. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, extname, join } from 'node:path';
import { CommentedJsonError, readCommentedJson } from '../../core/codec/commented-json.ts';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import type { CommandIo } from '../command-io.ts';
import { withEntry } from './json-edit.ts';

/** The directory and the environment that determine the files. */
type ConfigPlace = Pick<CommandIo, 'cwd' | 'env'>;

/** A client that reads its servers from a JSON file. */
export interface ConfiguredClient {
  readonly id: string;
  readonly title: string;
  /** The member that contains the servers. */
  readonly member: 'mcpServers' | 'servers';
  /** The file; undefined where the client does not exist on this platform. */
  file(place: ConfigPlace): string | undefined;
  /** The next step of the person after a change. */
  readonly next: string;
}

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

export const CLIENTS: readonly ConfiguredClient[] = [
  {
    id: 'claude-desktop',
    title: 'Claude Desktop',
    member: 'mcpServers',
    file: (place) => settings(place, 'Claude', 'claude_desktop_config.json'),
    next: 'Restart Claude Desktop',
  },
  {
    id: 'claude-code',
    title: 'Claude Code, in this directory',
    member: 'mcpServers',
    file: ({ cwd }) => join(cwd, '.mcp.json'),
    next: 'Start claude in this directory, and approve the server',
  },
  {
    id: 'cursor',
    title: 'Cursor',
    member: 'mcpServers',
    file: (place) => home(place, '.cursor', 'mcp.json'),
    next: 'Enable the server in the settings of Cursor',
  },
  {
    id: 'vscode',
    title: 'VS Code, in this directory',
    member: 'servers',
    file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'),
    next: 'Run "MCP: List Servers" in VS Code, and start the server',
  },
  {
    id: 'windsurf',
    title: 'Windsurf',
    member: 'mcpServers',
    file: (place) => home(place, '.codeium', 'windsurf', 'mcp_config.json'),
    next: 'Refresh the servers in the settings of Windsurf',
  },
];

/** An entry that starts a server. Clients start it in another directory, so every path is absolute. */
export interface ServerEntry {
  readonly command: string;
  readonly args: readonly string[];
}

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
export function entryText({ member }: Pick<ConfiguredClient, 'member'>, name: string, entry: ServerEntry): string {
  return JSON.stringify({ [member]: { [name]: shaped(member, entry) } }, undefined, 2);
}

/** VS Code names the transport of an entry. */
function shaped(member: ConfiguredClient['member'], { command, args }: ServerEntry): JsonObject {
  return { ...(member === 'servers' ? { type: 'stdio' } : {}), command, args };
}

/** A change of a file, before it is made. */
export interface ConfigChange {
  readonly file: string;
  readonly text: string;
  /** The text of the file when it was read; undefined without one. */
  readonly written: string | undefined;
  /** The entry of that name that the change replaces or removes. */
  readonly before: JsonObject | undefined;
}

/**
 * Prepares a change of a client's file. `entry` undefined removes the entry. Comments and the layout of the file stay.
 *
 * @throws {Error} for a file that is not JSON, or whose servers are no object
 */
export function prepareChange(
  client: ConfiguredClient,
  name: string,
  entry: ServerEntry | undefined,
  place: ConfigPlace,
): ConfigChange | undefined {
  const file = client.file(place);
  if (file === undefined) return undefined;
  const advice = 'Correct the file, or add the entry by hand (--print)';
  const written = readRegular(file);
  const config = readConfig(file, written ?? '', advice);
  const servers = config[client.member] ?? {};
  if (!isObject(servers)) throw new Error(`${file}: ${client.member}: expected an object. ${advice}`);
  const before = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (entry === undefined && before === undefined) return undefined;
  return {
    file,
    written,
    text: withEntry(written ?? '', client.member, name, entry && shaped(client.member, entry)),
    before: isJsonObject(before) ? before : undefined,
  };
}

function readConfig(file: string, text: string, advice: string): JsonObject {
  if (text.trim() === '') return {};
  try {
    const { value } = readCommentedJson(text);
    if (isJsonObject(value)) return value;
  } catch (error) {
    if (!(error instanceof CommentedJsonError)) throw error;
    throw new Error(`${file}:${error.line}:${error.column}: ${error.message}. ${advice}`);
  }
  throw new Error(`${file}: expected a JSON object. ${advice}`);
}

/**
 * Makes a change, and keeps the file as it was beside it. The file is replaced as a whole, so that a client never reads a
 * part of it.
 *
 * @returns the backup's path; undefined if the file did not exist
 * @throws {Error} if the file has changed since it was read
 */
export function applyChange({ file, text, written }: ConfigChange): string | undefined {
  mkdirSync(dirname(file), { recursive: true });
  // A person may have been asked in between, and the client or another command writes its file, too.
  if (readRegular(file) !== written)
    throw new Error(`${file} has changed since it was read, and was left alone. Run the command again`);
  const backup = written === undefined ? undefined : freeName(`${file}.troupe-backup`);
  // A copy has the mode of its source.
  if (backup !== undefined) copyFileSync(file, backup, constants.COPYFILE_EXCL);
  replaceFile(file, text, { link: 'follow' });
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
