/**
 * The members of an entry that programs other than Troupe write, and their meaning here. The table in docs/gateway.md has each of
 * them, with the programs that document it, and a test compares the names.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';

/** An entry in the words of this file, whatever program wrote it. */
interface CommonEntry {
  readonly entry: JsonObject;
  /** The options of the mount that follow from it. Those of `troupe` have precedence. */
  readonly options: JsonObject;
  readonly off: boolean;
  /** Readings that a person may want to check: the member, and what it is taken for. */
  readonly notes: readonly (readonly [member: string, note: string])[];
}

/** Members by another name. */
const SAME: Readonly<Record<string, string>> = {
  serverUrl: 'url',
  httpUrl: 'url',
  uri: 'url',
  cmd: 'command',
  envs: 'env',
  environment: 'env',
  http_headers: 'headers',
  transport: 'type',
  transportType: 'type',
  working_directory: 'cwd',
  baseUrl: 'url',
  base_url: 'url',
  server_url: 'url',
  executable: 'command',
};
/** Members with an effect of their own. */
const EFFECTIVE = `command args env url headers cwd envFile socket troupe type
  bearer_token_env_var env_http_headers bearerToken bearer_token bearerTokenEnv bearer_token_env requestInit env_vars
  disabled enabled isActive required disabledTools excludeTools disabled_tools anythingllm includeTools enabled_tools available_tools tools
  timeout tool_timeout_sec startup_timeout_sec startup_timeout_ms headersHelper sandbox sandboxEnabled`;
/** Members without an effect, which are no mistakes of their author. */
const WITHOUT_EFFECT = `autoApprove alwaysAllow trust default_tools_approval_mode
  oauth auth authProviderType targetAudience targetServiceAccount
  oauth_client_id oauth_client_secret oauth_callback_port oauth_resource scopes
  tokenCacheDir token_cache_dir clientName client_name oauthRedirectUrl oauth_redirect_url oauthCommand oauth_command
  lifecycle logging alwaysLoad supports_parallel_tool_calls experimental_environment start_on_launch source settings remote
  description dev gallery icon id name version provider logoUrl tags watchPaths registryUrl displayName bundled
  extensionName $schema comment _comment //`;

/** The names of all members that some program documents. */
export const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...Object.keys(SAME),
  ...`${EFFECTIVE} ${WITHOUT_EFFECT}`.split(/\s+/),
]);

/** Programs write these as an empty text when there is none. */
const MAY_BE_EMPTY: ReadonlySet<string> = new Set(['command', 'url', 'cwd', 'envFile']);
/** A server has one of these. */
const TARGETS: ReadonlySet<string> = new Set(['command', 'url', 'socket', 'openapi']);
const SECOND_MS = 1_000;
/** The longest time in seconds that Roo Code and Cline accept. */
const LONGEST_S = 3_600;

/** @returns the entry without the members that mean nothing: null, and an empty target or path */
export function presentMembers(given: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(given).filter(
      ([member, value]) => value !== null && !(value === '' && MAY_BE_EMPTY.has(SAME[member] ?? member)),
    ),
  );
}

/** @returns whether a value is an entry of a server: it has a target, under any name */
export function isServerEntry(value: JsonValue | undefined): boolean {
  return isJsonObject(value) && Object.keys(value).some((member) => TARGETS.has(SAME[member] ?? member));
}

/** Reads the members of an entry that are present as its program means them. Members that contradict each other stay, and fail the checks of an entry. */
export function commonEntry(written: JsonObject): CommonEntry {
  // Some documentation has the target in `transport`.
  const given = isJsonObject(written.transport) ? { ...written, ...written.transport, transport: undefined } : written;
  const entry: Record<string, JsonValue> = {};
  const options: Record<string, JsonValue> = {};
  const notes: (readonly [string, string])[] = [];
  for (const [member, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const name = SAME[member];
    if (name === undefined) entry[member] = value;
    else if (given[name] === undefined && entry[name] === undefined) entry[name] = value;
  }
  splitCommand(entry);
  if (typeof entry.url === 'string' && /^unix:/i.test(entry.url) && entry.socket === undefined) {
    entry.socket = entry.url.replace(/^unix:(?:\/\/)?/i, '');
    delete entry.url;
    delete entry.type;
  }
  addHeaders(entry, given);
  // An empty default: Codex passes on the variables that are set.
  const passed = listOf(given.env_vars).map((variable) => (isJsonObject(variable) ? variable.name : variable));
  const env = Object.fromEntries(passed.flatMap((name) => (typeof name === 'string' ? [[name, `\${${name}:-}`]] : [])));
  if (passed.length > 0) entry.env = { ...env, ...(isJsonObject(entry.env) ? entry.env : {}) };
  const suppressed = isJsonObject(given.anythingllm) ? given.anythingllm.suppressedTools : undefined;
  const except = [
    ...[given.disabledTools, given.excludeTools, given.disabled_tools, suppressed].flatMap(listOf),
    ...offIn(given.tools),
  ];
  if (except.length > 0) options.except = except;
  const only = ['includeTools', 'enabled_tools', 'available_tools', 'tools']
    .map((member) => given[member])
    .find((list) => Array.isArray(list));
  // Goose writes an empty list for all tools.
  const isAll = only === given.available_tools && listOf(only).length === 0;
  if (Array.isArray(only) && !only.includes('*') && !isAll) options.only = only;
  const timeoutMs = timeoutOf(given, notes);
  if (timeoutMs !== undefined) options.timeoutMs = timeoutMs;
  const connectMs =
    positive(given.startup_timeout_ms) ?? seconds(given.startup_timeout_sec) ?? startupOf(given.timeout);
  if (connectMs !== undefined) options.connectMs = connectMs;
  if (typeof given.required === 'boolean') options.required = given.required;
  if (given.headersHelper !== undefined)
    notes.push(['headersHelper', 'the program is not run. Write headers with variables, or troupe.auth']);
  const sandbox = given.sandboxEnabled ?? given.sandbox ?? false;
  if (sandbox !== false)
    notes.push([
      given.sandboxEnabled === undefined ? 'sandbox' : 'sandboxEnabled',
      'only VS Code has this sandbox. The program runs without it',
    ]);
  const off = given.disabled === true || given.enabled === false || given.isActive === false;
  return { entry, options, off, notes };
}

/** opencode writes a command with its arguments as a list, Zed wrote one as an object with a path. */
function splitCommand(entry: Record<string, JsonValue>): void {
  const { command } = entry;
  if (Array.isArray(command)) {
    const [program, ...args] = command;
    if (program === undefined) return;
    entry.command = program;
    entry.args = [...args, ...listOf(entry.args)];
  } else if (isJsonObject(command)) {
    const { path, args, env } = command;
    if (path !== undefined) entry.command = path;
    if (args !== undefined) entry.args ??= args;
    if (env !== undefined && env !== null) entry.env ??= env;
  }
}

/** Codex and mcporter name the variables of headers, so that no secret is in the file. */
function addHeaders(entry: Record<string, JsonValue>, given: JsonObject): void {
  const headers: Record<string, JsonValue> = {};
  const { requestInit, env_http_headers: named } = given;
  if (isJsonObject(requestInit) && isJsonObject(requestInit.headers)) Object.assign(headers, requestInit.headers);
  if (isJsonObject(named))
    for (const [header, variable] of Object.entries(named))
      if (typeof variable === 'string') headers[header] = `\${${variable}}`;
  const token = given.bearerToken ?? given.bearer_token;
  if (typeof token === 'string') headers.Authorization = `Bearer ${token}`;
  const variable = given.bearer_token_env_var ?? given.bearerTokenEnv ?? given.bearer_token_env;
  if (typeof variable === 'string') headers.Authorization = `Bearer \${${variable}}`;
  if (Object.keys(headers).length === 0) return;
  entry.headers = { ...(isJsonObject(entry.headers) ? entry.headers : {}), ...headers };
}

/**
 * The time of a call. Programs disagree about its unit. Claude Code ignores fewer than 1,000 ms, and a limit of less than a
 * second helps no call; Cline and Roo Code count seconds up to an hour.
 */
function timeoutOf(given: JsonObject, notes: (readonly [string, string])[]): number | undefined {
  const { timeout, tool_timeout_sec: tool } = given;
  const value = isJsonObject(timeout) ? timeout.request : timeout;
  const ms = positive(value);
  if (ms === undefined) return seconds(tool);
  const counts = given.autoApprove !== undefined || given.alwaysAllow !== undefined;
  if (ms >= SECOND_MS && !(counts && ms <= LONGEST_S)) return ms;
  notes.push([
    'timeout',
    `${ms} is read as seconds, as Cline and Roo Code write it. In milliseconds, write troupe.timeoutMs`,
  ]);
  return ms * SECOND_MS;
}

/** opencode has a time for the start apart. */
function startupOf(timeout: JsonValue | undefined): number | undefined {
  return isJsonObject(timeout) ? positive(timeout.startup) : undefined;
}

/** The tools that an object switches off: false, or an object that is not enabled. */
function offIn(tools: JsonValue | undefined): readonly string[] {
  if (!isJsonObject(tools)) return [];
  return Object.entries(tools).flatMap(([name, tool]) =>
    tool === false || (isJsonObject(tool) && tool.enabled === false) ? [name] : [],
  );
}

function positive(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 ? value : undefined;
}

function seconds(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && value > 0 && value < 1e9 ? Math.ceil(value * SECOND_MS) : undefined;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
