/** Parses the TARGET of `troupe call` and `troupe inspect`: a URL, a file, a directory, a socket, or a command after `--`. */
import { realpathSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { ConnectOptions, ConnectTarget } from '../../client/client-options.ts';
import { commandFile } from '../../core/kernel/package-files.ts';
import { isWindows } from '../../core/transports/socket-path.ts';
import { isModule, MODULE_KINDS } from '../../features/discovery/module-files.ts';
import type { OpenApiOptions } from '../../gateway/openapi/openapi-settings.ts';
import { absolutePath, type CommandIo, type Environment } from '../command-io.ts';
import type { LocalCaller } from '../serving/caller-option.ts';
import { CALLED } from '../serving/target.ts';
import { UsageError } from '../usage.ts';

/** Options of a program that the command starts. */
export interface ProgramOptions {
  /** The caller, to try the rules of the program. */
  readonly caller?: LocalCaller | undefined;
  /** `--data DIR`: the directory of its durable state. For a URL, that of the stored tokens. */
  readonly data?: string | undefined;
  /** `--openapi`: TARGET is a document, whatever its name is. */
  readonly openapi?: string | undefined;
  /** `--base-url URL` of an API. */
  readonly baseUrl?: string | undefined;
}

/** The names of OpenAPI documents. A server of MCP may have any other address. */
const DOCUMENT = /\.(?:json|ya?ml)$/i;

/** An API: its commands are those of a server that mounts it. */
export interface ApiTarget {
  /** The path or the address of its OpenAPI document. */
  readonly openapi: string;
  readonly api: OpenApiOptions;
}

export interface CallTarget {
  readonly target: ConnectTarget | ApiTarget;
  /** The target as the person wrote it; of an address without credentials and query, which may be secrets. */
  readonly name: string;
  /** The address of a server that is reached over HTTP. */
  readonly url: URL | undefined;
  /** Options of the connection: a program that this command starts may be slow to start. */
  readonly patience: Pick<ConnectOptions, 'connectMs' | 'probeMs' | 'eras'>;
  /** The words after the target. */
  readonly words: readonly string[];
}

/** `npx` may download the program first. A legacy program may leave the probe without an answer. */
export const COMMAND_PATIENCE = { connectMs: 60_000, probeMs: 5_000 };
/** A program of Troupe serves every era, so one that ends without an answer is not started again for the other era. */
const FILE_PATIENCE = { connectMs: 60_000, probeMs: 30_000, eras: 'modern' } as const;

/**
 * Parses `TARGET WORDS…` or `WORDS… -- COMMAND ARGS…`.
 *
 * @param rest the words after `--`: a command, and its arguments
 * @param headers HTTP headers as `Name: value`
 * @param options of a program that is started
 * @throws {UsageError}
 */
export function readCallTarget(
  command: string,
  positionals: readonly string[],
  rest: readonly string[],
  headers: readonly string[],
  io: Pick<CommandIo, 'cwd' | 'env'>,
  options: ProgramOptions = {},
): CallTarget {
  const [program, ...args] = rest;
  const [first = ''] = positionals;
  const address = /^https?:\/\//i.test(first) && URL.canParse(first) ? new URL(first) : undefined;
  if (program === undefined && (options.openapi !== undefined || DOCUMENT.test(address?.pathname ?? first)))
    return readDocumentTarget(command, positionals, headers, io, options);
  if (options.openapi !== undefined || options.baseUrl !== undefined)
    throw new UsageError(`troupe ${command}: --openapi and --base-url need an OpenAPI document as TARGET`);
  if (program !== undefined) {
    needsUrl(command, headers);
    needsProgram(command, options);
    needsState(command, options);
    const target = { command: program, args, env: environment(io.env) };
    return { target, name: rest.join(' '), url: undefined, patience: COMMAND_PATIENCE, words: positionals };
  }
  const [given, ...words] = positionals;
  if (given === undefined)
    throw new UsageError(`troupe ${command}: expected URL, FILE, DIR, SOCKET or -- COMMAND, got none`);
  if (/^https?:\/\//i.test(given)) {
    needsProgram(command, options);
    if (!URL.canParse(given)) throw new UsageError(`troupe ${command}: expected a URL, got ${given}`);
    const url = new URL(given);
    const target = { url, headers: readHeaders(command, headers) };
    return { target, name: nameOfAddress(url), url, patience: {}, words };
  }
  needsUrl(command, headers);
  const path = absolutePath(io, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isSocket() || (isWindows && given.startsWith('\\\\'))) {
    needsProgram(command, options);
    needsState(command, options);
    return { target: { socket: found ? path : given }, name: given, url: undefined, patience: {}, words };
  }
  if (!found)
    throw new UsageError(
      `troupe ${command}: expected URL, FILE, DIR, SOCKET or -- COMMAND, got ${given}: no such file or directory`,
    );
  if (!found.isDirectory() && !isModule(basename(path)))
    throw new UsageError(
      `troupe ${command}: expected a ${MODULE_KINDS} file, a directory or a socket, got ${given}. For a program, write -- ${given}`,
    );
  const main = commandFile();
  const target = {
    command: process.execPath,
    args: [...process.execArgv, main, 'run', realpathSync(path), '--no-supervisor', ...programArguments(options, io)],
    env: { ...environment(io.env), [CALLED]: '1' },
  };
  return { target, name: given, url: undefined, patience: FILE_PATIENCE, words };
}

/** @throws {UsageError} */
function readDocumentTarget(
  command: string,
  [given = '', ...words]: readonly string[],
  headers: readonly string[],
  io: Pick<CommandIo, 'cwd'>,
  options: ProgramOptions,
): CallTarget {
  needsProgram(command, options);
  needsState(command, options);
  const { baseUrl } = options;
  if (given === '') throw new UsageError(`troupe ${command}: expected an OpenAPI document, got none`);
  if (baseUrl !== undefined && !URL.canParse(baseUrl))
    throw new UsageError(`troupe ${command}: --base-url: expected a URL, got ${baseUrl}`);
  const address = /^https?:\/\//i.test(given) ? new URL(given) : undefined;
  const path = address ? given : absolutePath(io, given);
  if (!address && !statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new UsageError(`troupe ${command}: expected an OpenAPI document, got ${given}: no such file`);
  const api = { headers: readHeaders(command, headers), ...(baseUrl !== undefined && { baseUrl }) };
  const name = address ? nameOfAddress(address) : given;
  return { target: { openapi: path, api }, name, url: undefined, patience: {}, words };
}

/** The address of a server as the terminal and the logs of a CI may show it. */
export function nameOfAddress({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

/** @throws {UsageError} for headers of a target that is not reached over HTTP */
function needsUrl(command: string, headers: readonly string[]): void {
  if (headers.length > 0) throw new UsageError(`troupe ${command}: --header needs a URL as TARGET`);
}

/** @throws {UsageError} for a caller of a server that is not started, which decides itself who calls */
function needsProgram(command: string, { caller }: ProgramOptions): void {
  if (caller)
    throw new UsageError(
      `troupe ${command}: --principal and --scopes need FILE or DIR as TARGET: any other server decides itself who calls`,
    );
}

/** @throws {UsageError} for a directory of a server that is neither started by its file nor signed in to */
function needsState(command: string, { data }: ProgramOptions): void {
  if (data !== undefined)
    throw new UsageError(
      `troupe ${command}: --data needs FILE, DIR or a URL as TARGET: any other server decides itself where its state is`,
    );
}

function programArguments({ caller = {}, data }: ProgramOptions, io: Pick<CommandIo, 'cwd'>): readonly string[] {
  const { principal, scopes } = caller;
  return [
    ...(data === undefined ? [] : [`--data=${absolutePath(io, data)}`]),
    ...(principal === undefined ? [] : [`--principal=${principal}`]),
    ...(scopes ? [`--scopes=${scopes.join(',')}`] : []),
  ];
}

function readHeaders(command: string, headers: readonly string[]): Record<string, string> {
  const read: Record<string, string> = {};
  for (const header of headers) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*)$/.exec(header) ?? [];
    if (name === undefined || value === undefined)
      // The value may be a secret, and what stands before a missing colon may be its beginning.
      throw new UsageError(
        `troupe ${command}: --header: expected "Name: value" on one line, got ${header.length} character${header.length === 1 ? '' : 's'} of another form`,
      );
    read[name] = value;
  }
  return read;
}

/** The environment of the command: the person started the server from this shell. */
function environment(env: Environment): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) all[name] = value;
  return all;
}
