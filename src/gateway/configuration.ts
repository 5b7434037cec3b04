/** Reads a configuration of MCP servers as Claude Desktop, Claude Code, Cursor, VS Code and other programs write it. */

import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, resolve, sep } from 'node:path';
import { parseEnv } from 'node:util';
import { CommentedJsonError, readCommentedJson } from '../core/codec/commented-json.ts';
import {
  describe,
  isJsonObject,
  isObject,
  type JsonObject,
  type JsonValue,
  messageOf,
  shortened,
} from '../core/protocol/json.ts';
import { suggestion } from '../core/protocol/near-miss.ts';
import * as option from '../core/protocol/option-rows.ts';
import type { ServerOptions } from '../core/server/options.ts';
import { digest } from '../core/store/seal.ts';
import { CODE_OPTIONS } from '../features/code/code-options.ts';
import { commonEntry, isServerEntry, KNOWN_MEMBERS, presentMembers } from './client-members.ts';
import { type ConfiguredInput, inputsIn, undescribed } from './inputs.ts';
import { CONFIGURABLE, type MountOptions } from './mounts/mount-options.ts';
import { matches } from './mounts/names.ts';
import type { UpstreamOAuth } from './mounts/upstream-grants.ts';
import { CONFIGURABLE_API, type OpenApiOptions } from './openapi/openapi-settings.ts';
import { switchedOff } from './switched-off.ts';
import { expandHome, expandVariables, type VariableSource, variableOf } from './variables.ts';

/** A server that the gateway can connect to. */
type ConnectableTarget =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly cwd: string;
    }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly socket: string };

/** An API. */
interface ApiTarget {
  /** The path or the address of its OpenAPI document. */
  readonly openapi: string;
  readonly api: OpenApiOptions;
}

/** One entry of the configuration. */
export interface ConfiguredServer {
  /** The name of the mount. */
  readonly name: string;
  /** The name in the configuration. */
  readonly key: string;
  readonly target: ConnectableTarget | ApiTarget;
  /** The target as the configuration has it: variables are not replaced, so that no secret is shown. */
  readonly shown: string;
  readonly options: ConfiguredOptions;
  /** Two entries with equal digests have the same connection, or the same options. */
  readonly digests: { readonly target: string; readonly options: string };
}

/** The options of a mount that a configuration can set. */
type ConfiguredOptions = Omit<MountOptions, 'auth' | 'allow' | 'pinFile' | 'catalogueFile'> & {
  readonly auth?: false | ConfiguredAuth;
};

/** OAuth at a server with an address. Without `grant`, each person signs in. Secrets come from variables, never from the file. */
type ConfiguredAuth = Omit<UpstreamOAuth, 'tokens' | 'assertion' | 'exchange'>;

/** A part of the configuration that has no effect. */
interface ConfigurationProblem {
  readonly line: number;
  /** Such as `mcpServers.gh.env.TOKEN`. */
  readonly field: string;
  readonly message: string;
  /** The server that is not mounted because of it; undefined if only the field is ignored. */
  readonly off: string | undefined;
}

export interface GatewayConfiguration {
  readonly servers: readonly ConfiguredServer[];
  /** The names of disabled servers. */
  readonly disabled: readonly string[];
  readonly problems: readonly ConfigurationProblem[];
  /** The paths of the files with variables (`envFile`), which may not exist. */
  readonly files: ReadonlySet<string>;
  /** The inputs of its servers that no environment variable has, with those that have a default. */
  readonly inputs: readonly ConfiguredInput[];
}

/** The configuration cannot be read. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

interface ConfigurationSource {
  /** The path of the file: paths in it are relative to its directory. */
  readonly file: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Longest configuration, in UTF-16 code units. */
const MAX_LENGTH = 1_048_576;
/** Maximum number of servers of a configuration. */
const MAX_SERVERS = 64;
const LONGEST_NAME = 24;
const HASH_LENGTH = 5;

/** The words of a command: variables and quoted parts may have spaces. */
const WORDS = /(?:\$\{[^}]*\}|"[^"]*"|'[^']*'|[^\s"'])+/g;
/** The members of an entry with a command only. */
const OF_COMMANDS = ['args', 'env', 'envFile', 'cwd'] as const;
/** Programs write them in any case, with `-`, `_` or nothing between the words. */
const TYPES: Readonly<Record<string, 'command' | 'url'>> = {
  stdio: 'command',
  local: 'command',
  remote: 'url',
  http: 'url',
  sse: 'url',
  'streamable-http': 'url',
  streamable: 'url',
};

/**
 * Reads a configuration. A problem of one server turns off that server, and no other.
 *
 * @throws {ConfigurationError} with file and line if the text is not JSON, or has no servers' object
 * @example readConfiguration(readFileSync('mcp.json', 'utf8'), { file: 'mcp.json', environment: process.env });
 */
export function readConfiguration(text: string, source: ConfigurationSource): GatewayConfiguration {
  return new ConfigurationReader(text, source).read();
}

/**
 * Reads the options of the server itself: the member `troupe` beside the servers. They apply from the start of the gateway.
 *
 * @throws {ConfigurationError} with file and line if the text is not JSON, or an option is unknown or invalid
 */
export function gatewayOptionsIn(text: string, file: string): Pick<ServerOptions, 'code'> {
  const { value, lineOf } = parsed(text, file, () => {});
  const own = isJsonObject(value) ? value.troupe : undefined;
  if (own === undefined) return {};
  const problem = GATEWAY_OPTIONS(own);
  if (problem === undefined && isGatewayOptions(own)) return own;
  throw new ConfigurationError(
    `${file}:${isJsonObject(value) ? (lineOf(value, 'troupe') ?? 1) : 1}: troupe: ${problem}`,
  );
}

/** The options of a server that a file can have. */
const GATEWAY_OPTIONS = option.group('an object such as { "code": { "effects": "allow" } }', CODE_OPTIONS);

function isGatewayOptions(value: unknown): value is Pick<ServerOptions, 'code'> {
  return GATEWAY_OPTIONS(value) === undefined;
}

/** A problem of one field, while its entry is read. */
class FieldProblem extends Error {
  readonly path: readonly string[];

  constructor(path: readonly string[], message: string) {
    super(message);
    this.path = path;
  }
}

class ConfigurationReader {
  readonly #file: string;
  readonly #root: JsonObject;
  readonly #lineOf: (container: object, member: string) => number | undefined;
  readonly #variables: VariableSource;
  readonly #problems: ConfigurationProblem[] = [];
  readonly #servers = new Map<string, ConfiguredServer>();
  readonly #disabled: string[] = [];
  readonly #files = new Set<string>();
  readonly #inputs: ReadonlyMap<string, ConfiguredInput>;
  readonly #asked = new Map<string, ConfiguredInput>();

  constructor(text: string, { file, environment }: ConfigurationSource) {
    this.#file = file;
    if (text.length > MAX_LENGTH)
      throw new ConfigurationError(`${file}: expected at most ${MAX_LENGTH} characters, got ${text.length}`);
    const { value, lineOf } = parsed(text, file, (path, line) =>
      this.#problems.push({ line, field: fieldOf(path), message: 'occurs twice. The last one counts', off: undefined }),
    );
    if (!isJsonObject(value)) throw new ConfigurationError(`${file}:1: expected a JSON object, got ${describe(value)}`);
    this.#root = value;
    this.#lineOf = lineOf;
    this.#inputs = inputsIn(value);
    const input = (id: string): string | undefined => this.#input(id, environment);
    this.#variables = { environment, folder: workspaceOf(file), home: homedir(), separator: sep, input };
  }

  read(): GatewayConfiguration {
    const lists = listsIn(this.#root);
    if (lists.length === 0)
      throw new ConfigurationError(
        `${this.#file}:1: expected one of the members ${LISTS.map((path) => path.join('.')).join(', ')}, got ${Object.keys(this.#root).slice(0, 5).join(', ') || 'no member'}${nearMiss(this.#root, ['mcpServers', 'servers'])}`,
      );
    const found: ServerEntry[] = [];
    for (const { path, entries } of lists) {
      if (!isJsonObject(entries) && !Array.isArray(entries))
        throw new ConfigurationError(
          `${this.#file}:${this.#lineOf(this.#root, path[0] ?? '') ?? 1}: ${path.join('.')}: expected an object, got ${describe(entries)}`,
        );
      for (const [member, entry] of Object.entries(entries)) {
        // Continue writes a list, whose entries have names.
        const names = Array.isArray(entries) && isJsonObject(entry) ? [entry.name, entry.id] : [];
        found.push({ path: [...path, member], key: names.find(isNonEmpty) ?? member, entry });
      }
    }
    const names = mountNames(found.map(({ key }) => key));
    for (const [index, entry] of found.entries()) this.#entry(entry, names[index] ?? '');
    return {
      servers: [...this.#servers.values()],
      disabled: this.#disabled,
      problems: this.#problems,
      files: this.#files,
      inputs: [...this.#asked.values()],
    };
  }

  #entry({ path, key, entry }: ServerEntry, name: string): void {
    try {
      const server = this.#server(path, key, name, entry);
      if (server === undefined) return;
      // The same key in two lists is one server.
      if (this.#servers.has(server.name))
        throw new FieldProblem(path, `expected one server ${quote(key)}, got a second`);
      if (this.#servers.size >= MAX_SERVERS) throw new FieldProblem(path, `expected at most ${MAX_SERVERS} servers`);
      this.#servers.set(server.name, server);
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      this.#report(error.path, error.message, key);
    }
  }

  /** @returns undefined for a disabled server. @throws {FieldProblem} */
  #server(
    path: readonly string[],
    key: string,
    name: string,
    value: JsonValue | undefined,
  ): ConfiguredServer | undefined {
    if (!isJsonObject(value)) throw new FieldProblem(path, `expected an object, got ${describe(value)}`);
    const given = presentMembers(value);
    read(given, path, 'disabled', isBoolean, 'true or false');
    const { entry, options, off, notes } = commonEntry(given);
    const { by, except: hidden } = switchedOff(this.#root, key);
    if (by !== undefined && !off) this.#report(path, `${by} of the file switches it off`, undefined);
    if (off || by !== undefined) {
      this.#disabled.push(name);
      return undefined;
    }
    this.#lookUpInputs(given);
    if (given.openapi !== undefined) return this.#api(path, key, name, given, hidden);
    this.#unknown(path, given);
    for (const [member, note] of notes) this.#report([...path, member], note, undefined);
    const written = this.#target(path, entry);
    const target = this.#withFile(path, entry, this.#expanded(path, written));
    if (!isJsonObject(given.timeout)) read(given, path, 'timeout', isCount, 'milliseconds, at least 1');
    const ofTroupe = read(entry, path, 'troupe', isJsonObject, 'an object') ?? {};
    const own = this.#authorized(ofTroupe, [...path, 'troupe'], target);
    const all: JsonObject = { ...options, ...own, ...limited(options, own, hidden) };
    const digests = { target: digest({ ...target }), options: digest(all) };
    checkOptions(all, [...path, 'troupe']);
    return {
      name,
      key,
      target,
      shown: shownTarget(written),
      options: all,
      digests,
    };
  }

  /**
   * An entry with an OpenAPI document. No other program has such entries, so a wrong member turns it off, as one of `troupe` does:
   * without `readOnly`, it would offer more than its author wants.
   *
   * @throws {FieldProblem}
   */
  #api(
    path: readonly string[],
    key: string,
    name: string,
    given: JsonObject,
    hidden: readonly string[],
  ): ConfiguredServer {
    checkMembers(given, path, API);
    const { openapi, baseUrl, headers, auth, troupe, ...others } = given;
    const written = String(openapi);
    const replaced = this.#replaced(written, [...path, 'openapi']);
    const isAddress = /^https?:\/\//i.test(replaced);
    const api: JsonObject = {
      ...Object.fromEntries(Object.entries(others).filter(([member]) => Object.hasOwn(CONFIGURABLE_API, member))),
      ...(isText(baseUrl) && { baseUrl: this.#replaced(baseUrl, [...path, 'baseUrl']) }),
      ...(isTexts(headers) && {
        headers: Object.fromEntries(
          Object.entries(headers).map(([member, value]) => [
            member,
            this.#replaced(value, [...path, 'headers', member], true),
          ]),
        ),
      }),
      ...(auth !== undefined && { auth: this.#credentials(auth, [...path, 'auth']) }),
    };
    checkMembers(api, path, { ...CONFIGURABLE_API, auth: option.anything });
    const target = { openapi: isAddress ? replaced : this.#resolved(written, [...path, 'openapi']), api };
    const own = read(given, path, 'troupe', isJsonObject, 'an object') ?? {};
    if (own.auth !== undefined)
      throw new FieldProblem([...path, 'troupe', 'auth'], 'an entry with openapi has auth beside openapi');
    const all: JsonObject = { ...own, ...limited({}, own, hidden) };
    const digests = { target: digest({ openapi: target.openapi, ...api }), options: digest(all) };
    checkOptions(all, [...path, 'troupe']);
    return { name, key, target, shown: `OpenAPI ${written}`, options: all, digests };
  }

  /** Replaces the variables of credentials. A secret can only be a variable. @throws {FieldProblem} */
  #credentials(value: JsonValue, path: readonly string[]): JsonValue {
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([member, each]) => {
        const at = [...path, member];
        if (typeof each !== 'string') return [member, this.#credentials(each ?? null, at)];
        if (SECRETS.has(member) && !isVariable(each)) throw new FieldProblem(at, NO_SECRETS);
        return [member, this.#replaced(each, at)];
      }),
    );
  }

  #unknown(path: readonly string[], entry: JsonObject): void {
    for (const member of Object.keys(entry))
      if (!KNOWN_MEMBERS.has(member))
        this.#report([...path, member], `unknown member, ignored${suggestion(member, [...KNOWN_MEMBERS])}`, undefined);
  }

  /** The target with its variables as they are written. */
  #target(path: readonly string[], entry: JsonObject): ConnectableTarget {
    const present = (['command', 'url', 'socket'] as const).filter((way) => entry[way] !== undefined);
    const named = typeof entry.type === 'string' ? wayOf(entry.type) : undefined;
    const ways = present.length > 1 && named !== undefined && present.includes(named) ? [named] : present;
    for (const other of present)
      if (!ways.includes(other))
        this.#report([...path, other], `the type of the entry is ${String(entry.type)}. It is ignored`, undefined);
    const [way, more] = ways;
    if (way === undefined || more !== undefined)
      throw new FieldProblem(path, `expected one of command, url and socket, got ${ways.join(' and ') || 'none'}`);
    const type = read(entry, path, 'type', isText, 'a string');
    if (type !== undefined && wayOf(type) !== way)
      throw new FieldProblem(
        [...path, 'type'],
        `expected ${
          Object.keys(TYPES)
            .filter((each) => TYPES[each] === way)
            .join(' or ') || 'no type'
        } for an entry with ${way}, got ${describe(type)}`,
      );
    const others = way === 'command' ? ['headers'] : [...OF_COMMANDS, ...(way === 'url' ? [] : ['headers'])];
    // Programs ignore these, and some write an empty one.
    for (const member of others)
      if (isFilled(entry[member]))
        this.#report([...path, member], `an entry with ${way} has no ${member}. It is ignored`, undefined);
    const value = read(entry, path, way, isNonEmpty, 'a string that is not empty') ?? '';
    if (way === 'socket') return { socket: value };
    if (way === 'url')
      return { url: value, headers: read(entry, path, 'headers', isTexts, 'an object of strings') ?? {} };
    const [command = value, ...first] = this.#words(value, path);
    return {
      command,
      args: [...first, ...(read(entry, path, 'args', isTextList, 'a list of strings') ?? [])],
      env: variablesOf(read(entry, path, 'env', isEnvironment, 'an object of strings') ?? {}),
      cwd: read(entry, path, 'cwd', isNonEmpty, 'a string that is not empty') ?? '.',
    };
  }

  /** The words of a command that has its arguments in one text, as a shell would part them; a program may have spaces in its path. */
  #words(command: string, path: readonly string[]): readonly string[] {
    const words = command.match(WORDS) ?? [];
    const [first = ''] = words;
    if (words.length < 2) return [command];
    const isProgram = (text: string): boolean =>
      existsSync(resolve(this.#variables.folder, expandHome(text, this.#variables)));
    const isSplit = !isProgram(command) && (!/[/\\]/.test(first) || isProgram(first));
    if (!isSplit) return [command];
    this.#report(
      [...path, 'command'],
      'a program with its arguments in one text is read as a shell reads it. Write the arguments in args',
      undefined,
    );
    return words.map((word) =>
      word.replace(/"([^"]*)"|'([^']*)'/g, (_, one?: string, other?: string) => one ?? other ?? ''),
    );
  }

  /** Looks up all inputs of an entry: it ends with the first one that has no value, and a person is asked for all of them. */
  #lookUpInputs(value: JsonValue | undefined): void {
    if (typeof value === 'string')
      for (const [, id = ''] of value.matchAll(/\$\{input:([^{}]*)\}/g)) this.#variables.input(id);
    else if (typeof value === 'object' && value !== null)
      for (const part of Object.values(value)) this.#lookUpInputs(part);
  }

  /** An input of VS Code: an environment variable of its name, or its default. */
  #input(id: string, environment: ConfigurationSource['environment']): string | undefined {
    const given = [id, variableOf(id)].find(
      (name) => Object.hasOwn(environment, name) && environment[name] !== undefined,
    );
    if (given !== undefined) return environment[given];
    const input = this.#inputs.get(id) ?? undescribed(id);
    this.#asked.set(id, input);
    return input.fallback;
  }

  #expanded(path: readonly string[], target: ConnectableTarget): ConnectableTarget {
    const text = (value: string, ...at: readonly string[]): string => this.#replaced(value, [...path, ...at]);
    const all = (values: Readonly<Record<string, string>>, member: string): Record<string, string> =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, this.#replaced(value, [...path, member, name], true)]),
      );
    if ('socket' in target) return { socket: this.#resolved(target.socket, [...path, 'socket']) };
    if ('url' in target) {
      const url = text(target.url, 'url');
      if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
        throw new FieldProblem([...path, 'url'], `expected an http or https URL, got ${quote(target.url)}`);
      return { url, headers: all(target.headers, 'headers') };
    }
    const command = expandHome(text(target.command, 'command'), this.#variables);
    return {
      // A path is relative to the workspace; a bare name is looked up in PATH.
      command: /[/\\]/.test(command) && !isAbsolute(command) ? resolve(this.#variables.folder, command) : command,
      args: target.args.map((value, index) => {
        const replaced = text(value, 'args', String(index));
        // As in a shell, the value of a variable may begin with ~: it is no path of this file.
        return value.startsWith('~') ? expandHome(replaced, this.#variables) : replaced;
      }),
      env: all(target.env, 'env'),
      cwd: this.#resolved(target.cwd, [...path, 'cwd']),
    };
  }

  /** Adds the variables of `envFile`, as VS Code does: those of `env` have precedence. @throws {FieldProblem} */
  #withFile(path: readonly string[], entry: JsonObject, target: ConnectableTarget): ConnectableTarget {
    const written = read(entry, path, 'envFile', isNonEmpty, 'a string that is not empty');
    if (written === undefined || !('command' in target)) return target;
    const at = [...path, 'envFile'];
    const file = this.#resolved(written, at);
    this.#files.add(file);
    try {
      const entries = Object.entries(parseEnv(readFileSync(file, 'utf8')));
      const variables = Object.fromEntries(entries.flatMap(([name, value]) => (isText(value) ? [[name, value]] : [])));
      return { ...target, env: { ...variables, ...target.env } };
    } catch (error) {
      // The path in the message of the system has the values of variables.
      const why = messageOf(error).replace(/, \w+ '.*$/s, '');
      throw new FieldProblem(at, `the file ${written} cannot be read: ${why}`);
    }
  }

  /** Replaces the variables of `auth`. A secret can only be a variable. @throws {FieldProblem} */
  #authorized(options: JsonObject, path: readonly string[], target: ConnectableTarget): JsonObject {
    const { auth } = options;
    if (!isJsonObject(auth)) return options;
    const at = [...path, 'auth'];
    if (!('url' in target)) throw new FieldProblem(at, 'only an entry with url has auth');
    checkMembers(auth, at, AUTH);
    const expanded = Object.entries(auth).map(([name, value]) => {
      if (typeof value !== 'string') return [name, value];
      if (SECRETS.has(name) && !isVariable(value)) throw new FieldProblem([...at, name], NO_SECRETS);
      return [name, this.#replaced(value, [...at, name])];
    });
    return { ...options, auth: Object.fromEntries(expanded) };
  }

  /** A path, which is relative to the workspace. @throws {FieldProblem} */
  #resolved(written: string, at: readonly string[]): string {
    return resolve(this.#variables.folder, expandHome(this.#replaced(written, at), this.#variables));
  }

  /**
   * @param bare `$NAME` is a variable, too
   * @throws {FieldProblem}
   */
  #replaced(value: string, path: readonly string[], bare = false): string {
    // No name: the text may be a password.
    const unset = (): void =>
      this.#report(path, 'a $NAME in it is no environment variable that is set. It stays as it is', undefined);
    try {
      return expandVariables(value, this.#variables, bare ? unset : undefined);
    } catch (error) {
      throw new FieldProblem(path, messageOf(error));
    }
  }

  #report(path: readonly string[], message: string, off: string | undefined): void {
    let container: JsonValue | undefined = this.#root;
    let line = 1;
    for (const member of path) {
      if (typeof container !== 'object' || container === null) break;
      line = this.#lineOf(container, member) ?? line;
      container = (isJsonObject(container) ? container : Object(container))[member];
    }
    this.#problems.push({ line, field: fieldOf(path), message, off });
  }
}

function parsed(
  text: string,
  file: string,
  repeated: (path: readonly string[], line: number) => void,
): ReturnType<typeof readCommentedJson> {
  try {
    return readCommentedJson(text, repeated);
  } catch (error) {
    if (!(error instanceof CommentedJsonError)) throw error;
    throw new ConfigurationError(`${file}:${error.line}:${error.column}: ${error.message}`);
  }
}

function fieldOf(path: readonly string[]): string {
  return path.map((part) => shortened(part, 60)).join('.');
}

/** A member that says something: not an empty list or object. */
function isFilled(value: JsonValue | undefined): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined;
}

/**
 * The tools that remain. One that a person has switched off in the program's members stays off, whatever `troupe` offers: `except` adds
 * up, and of two lists `only` the tools of both remain.
 */
function limited(options: JsonObject, own: JsonObject, hidden: readonly string[]): JsonObject {
  const except = [...hidden, ...textsOf(options.except), ...textsOf(own.except)];
  const both =
    Array.isArray(options.only) && isTextList(own.only) ? overlap(textsOf(options.only), own.only) : undefined;
  // A wrong option of `troupe` must not be hidden from its check.
  return {
    ...(except.length > 0 && (own.except === undefined || isTextList(own.except)) ? { except } : {}),
    ...(both && { only: both }),
  };
}

/** The names of each list that a pattern of the other matches. */
function overlap(one: readonly string[], other: readonly string[]): readonly string[] {
  const within = (names: readonly string[], patterns: readonly string[]): readonly string[] =>
    names.filter((name) => patterns.some((pattern) => matches(pattern, name)));
  return [...new Set([...within(one, other), ...within(other, one)])];
}

function textsOf(value: JsonValue | undefined): readonly string[] {
  return isTextList(value) ? value : [];
}

/** The directories in a project in which programs keep their files: paths in these are relative to the project. */
const OF_PROGRAMS: readonly string[] = [
  ...['.vscode', '.cursor', '.claude', '.claude-plugin', '.roo', '.kilocode', '.gemini', '.qwen', '.amazonq', '.zed'],
  ...['.copilot', '.factory', '.iflow', '.kiro/settings', '.junie/mcp', '.amazonq/agents'],
];

/** The directory that a project's configuration belongs to: that of the file, or the one that contains the directory of a program. */
function workspaceOf(file: string): string {
  const directory = dirname(resolve(file));
  const found = OF_PROGRAMS.find((each) => `${sep}${each.split('/').join(sep)}` === directory.slice(-each.length - 1));
  return found === undefined ? directory : resolve(directory, ...found.split('/').map(() => '..'));
}

function wayOf(type: string): 'command' | 'url' | undefined {
  const plain = (text: string): string => text.toLowerCase().replace(/[-_ ]/g, '');
  return Object.entries(TYPES).find(([name]) => plain(name) === plain(type))?.[1];
}

/** An entry of a list of servers. */
interface ServerEntry {
  readonly path: readonly string[];
  /** Its name. */
  readonly key: string;
  readonly entry: JsonValue | undefined;
}

/** The members in which programs write their servers. In `mcp` of opencode they are the members themselves. */
const LISTS: readonly (readonly string[])[] = [
  ['mcpServers'],
  ['servers'],
  ['mcp', 'servers'],
  ['mcp'],
  ['context_servers'],
  ['mcp_servers'],
  ['amp.mcpServers'],
];

/** Members of the file itself. */
const COMMENTS: ReadonlySet<string> = new Set(['$schema', 'comment', '_comment', '//']);

function listsIn(root: JsonObject): { readonly path: readonly string[]; readonly entries: JsonValue }[] {
  const found = LISTS.flatMap((path) => {
    let entries: JsonValue | undefined = root;
    for (const member of path) entries = isJsonObject(entries) ? entries[member] : undefined;
    return entries === undefined ? [] : [{ path, entries }];
  });
  // Warp writes the servers alone, and so do plugins of Claude Code. In settings, another member with a command is no server.
  const entries = Object.entries(root).filter(([member]) => !COMMENTS.has(member));
  if (found.length === 0 && entries.length > 0 && entries.every(([, entry]) => isServerEntry(entry)))
    return [{ path: [], entries: Object.fromEntries(entries) }];
  // Gemini CLI and VS Code have settings in `mcp`, which are no servers.
  return found.filter(
    ({ path, entries }) => path.join('.') !== 'mcp' || (found.length === 1 && isListOfServers(entries)),
  );
}

function isListOfServers(value: JsonValue): boolean {
  return isJsonObject(value) && Object.values(value).some(isServerEntry);
}

/**
 * The names of mounts for the names of entries: `[a-z][a-z0-9-]{0,23}`. A name that is cut, or of which no letter is left, gets a
 * hash of the whole name, and so does one that equals another after the change. A name that needs no change stays as it is. So
 * names do not depend on the order of the entries.
 */
function mountNames(keys: readonly string[]): readonly string[] {
  const plain = keys.map(plainName);
  return keys.map((key, index) => {
    const name = plain[index] ?? '';
    const isCut = name.length > LONGEST_NAME;
    const isShared = plain.filter((other) => other === name).length > 1 && name !== key;
    if (name !== '' && !isCut && !isShared) return name;
    const hash = digest(key)
      .toLowerCase()
      .replace(/[^a-z0-9]/g, '')
      .slice(0, HASH_LENGTH);
    const start = name.slice(0, LONGEST_NAME - HASH_LENGTH - 1).replace(/-+$/, '');
    return `${start === '' ? 'server' : start}-${hash}`;
  });
}

function plainName(key: string): string {
  return key
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .replace(/-+$/, '');
}

const unempty = option.expected('a string that is not empty', isNonEmpty);
const strings = option.expected('a list of strings', isTextList);
const variable = option.expected('a variable', isNonEmpty);

const AUTH: option.Rows<ConfiguredAuth> = {
  clientId: unempty,
  clientSecret: variable,
  privateKey: variable,
  algorithm: option.oneOf('ES256', 'RS256', 'PS256', 'EdDSA'),
  issuer: unempty,
  clientName: unempty,
  scopes: strings,
  grant: option.oneOf('authorization_code', 'client_credentials'),
  dpop: option.expected('"auto", true or false', (value) => value === 'auto' || isBoolean(value)),
  signInMs: option.duration,
  catalogue: option.oneOf('operator', 'anyone'),
};
const SECRETS: ReadonlySet<string> = new Set(['clientSecret', 'privateKey', 'token', 'password']);
const NO_SECRETS = `expected a variable such as \${NAME}: a configuration has no secrets`;

/** The members of an entry with an OpenAPI document. */
const API: Readonly<Record<string, option.Check>> = {
  openapi: unempty,
  ...CONFIGURABLE_API,
  // Its address may have variables, which are replaced before it is checked.
  baseUrl: unempty,
  auth: option.expected('false or an object', (value) => value === false || isJsonObject(value)),
  troupe: option.object,
  ...option.each(['disabled', 'description', '$schema', 'comment', '_comment', '//'], option.anything),
};

function isVariable(value: string): boolean {
  return /^\$\{[^{}]+\}$/.test(value);
}

const OPTIONS: option.Rows<ConfiguredOptions> = {
  ...CONFIGURABLE,
  auth: option.expected('false or an object', (value) => value === false || isJsonObject(value)),
  prefix: option.expected('false or a string', (value) => value === false || isNonEmpty(value)),
  rename: option.expected('an object of strings', isTexts),
  only: strings,
  except: strings,
};

/**
 * Checks the member `troupe`. A wrong option turns the server off: without `only`, it would offer more than the author wants.
 *
 * @throws {FieldProblem}
 */
function checkOptions(given: JsonObject, path: readonly string[]): asserts given is JsonObject & ConfiguredOptions {
  checkMembers(given, path, OPTIONS);
}

/** @throws {FieldProblem} for the first member that is unknown, or has another type */
function checkMembers(given: JsonObject, path: readonly string[], rows: Readonly<Record<string, option.Check>>): void {
  const names = Object.keys(rows);
  for (const [name, value] of Object.entries(given)) {
    const problem = Object.hasOwn(rows, name)
      ? rows[name]?.(value)
      : `unknown option${suggestion(name, names)}. The options are ${names.join(', ')}`;
    if (problem === undefined) continue;
    // A list says which of its entries is wrong.
    const [, place, member, text = problem] = /^\[(\d+)\](?:\.(\w+))?: (.*)$/s.exec(problem) ?? [];
    throw new FieldProblem([...path, name, ...[place, member].filter(isText)], text);
  }
}

/** Reads a member of an entry. @throws {FieldProblem} if it has another type */
function read<T>(
  entry: JsonObject,
  path: readonly string[],
  member: string,
  is: (value: unknown) => value is T,
  expected: string,
): T | undefined {
  const value = entry[member];
  if (value === undefined || is(value)) return value;
  throw new FieldProblem([...path, member], `expected ${expected}, got ${describe(value)}`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isNonEmpty(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !value.includes('\0');
}

function isBoolean(value: unknown): value is boolean {
  return typeof value === 'boolean';
}

function isCount(value: unknown): value is number {
  return option.isWhole(value, 1);
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => isText(item) && !item.includes('\0'));
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return isObject(value) && Object.values(value).every(isText);
}

function isEnvironment(value: unknown): value is Readonly<Record<string, string | number | boolean | null>> {
  return (
    isObject(value) &&
    Object.values(value).every((item) => item === null || ['string', 'number', 'boolean'].includes(typeof item))
  );
}

/** VS Code accepts numbers, and null for a variable that the server must not get. */
function variablesOf(given: Readonly<Record<string, string | number | boolean | null>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
  );
}

/** The target as a person reads it in a log: a command with all of its arguments, as a shell would need them. */
function shownTarget(target: ConnectableTarget): string {
  if ('url' in target) return target.url;
  if ('socket' in target) return `socket ${target.socket}`;
  const { command, args, env } = target;
  const variables = Object.keys(env).length === 0 ? '' : ` (with ${Object.keys(env).join(', ')} set)`;
  return `${[command, ...args].map(shellWord).join(' ')}${variables}`;
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./${}-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function quote(text: string): string {
  return `"${shortened(text, 60)}"`;
}

/** The first unknown member that looks like a known one. */
function nearMiss(given: object, known: readonly string[]): string {
  return (
    Object.keys(given)
      .map((name) => suggestion(name, known))
      .find((words) => words !== '') ?? ''
  );
}
