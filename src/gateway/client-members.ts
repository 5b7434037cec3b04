/**
 * The members of an entry that programs other than Troupe write, and their meaning here. The table is data: docs/gateway.md shows
 * it, and a test compares both.
 */
import { isJsonObject, type JsonObject, type JsonValue } from '../protocol/json.ts';

/** One member, or several of one meaning. */
export interface ClientMember {
  readonly members: readonly string[];
  /** The programs that document it. */
  readonly programs: string;
  /** Its effect, as docs/gateway.md states it. */
  readonly effect: string;
  /** The documentation. */
  readonly source: string;
}

const CLAUDE_CODE = 'https://code.claude.com/docs/en/mcp';
const CURSOR = 'https://cursor.com/docs/context/mcp';
const VS_CODE = 'https://code.visualstudio.com/docs/copilot/reference/mcp-configuration';
const WINDSURF = 'https://docs.windsurf.com/windsurf/cascade/mcp';
const CLINE = 'https://docs.cline.bot/mcp/configuring-mcp-servers';
const ROO = 'https://docs.roocode.com/features/mcp/using-mcp-in-roo';
const KIRO = 'https://kiro.dev/docs/mcp/configuration/';
const GEMINI = 'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md';
const CODEX = 'https://developers.openai.com/codex/mcp';
const OPENCODE = 'https://opencode.ai/docs/mcp-servers/';
const ZED = 'https://zed.dev/docs/ai/mcp';
const GOOSE = 'https://block.github.io/goose/docs/getting-started/using-extensions';

export const CLIENT_MEMBERS: readonly ClientMember[] = [
  { members: ['command', 'args', 'env', 'url', 'headers'], programs: 'all', effect: 'the target', source: CLAUDE_CODE },
  {
    members: ['cwd', 'envFile'],
    programs: 'Cursor, VS Code',
    effect: 'the directory and a file of variables',
    source: VS_CODE,
  },
  { members: ['serverUrl'], programs: 'Windsurf', effect: 'as `url`', source: WINDSURF },
  { members: ['httpUrl'], programs: 'Gemini CLI', effect: 'as `url`', source: GEMINI },
  { members: ['uri'], programs: 'Goose', effect: 'as `url`; `unix:` addresses are sockets', source: GOOSE },
  { members: ['cmd', 'envs'], programs: 'Goose', effect: 'as `command` and `env`', source: GOOSE },
  { members: ['environment'], programs: 'opencode', effect: 'as `env`; `command` may be a list', source: OPENCODE },
  { members: ['http_headers'], programs: 'Codex', effect: 'as `headers`', source: CODEX },
  {
    members: ['bearer_token_env_var', 'env_http_headers'],
    programs: 'Codex',
    effect: '`headers` from variables',
    source: CODEX,
  },
  {
    members: ['type', 'transport', 'transportType'],
    programs: 'all',
    effect: 'checked against the target',
    source: CLINE,
  },
  {
    members: ['disabled'],
    programs: 'Cline, Roo Code, Kiro, Windsurf, opencode',
    effect: 'the server is off',
    source: CLINE,
  },
  { members: ['enabled'], programs: 'opencode, Codex, Goose', effect: '`false`: the server is off', source: OPENCODE },
  {
    members: ['isActive'],
    programs: 'Cherry Studio',
    effect: '`false`: the server is off',
    source: 'https://docs.cherry-ai.com',
  },
  { members: ['disabledTools'], programs: 'Kiro, Roo Code, Windsurf', effect: 'as `except`', source: KIRO },
  { members: ['excludeTools'], programs: 'Gemini CLI', effect: 'as `except`', source: GEMINI },
  { members: ['disabled_tools'], programs: 'Codex', effect: 'as `except`', source: CODEX },
  { members: ['includeTools'], programs: 'Gemini CLI', effect: 'as `only`', source: GEMINI },
  { members: ['enabled_tools'], programs: 'Codex', effect: 'as `only`', source: CODEX },
  {
    members: ['tools'],
    programs: 'GitHub Copilot',
    effect: 'as `only`; `["*"]` is all',
    source: 'https://docs.github.com/en/copilot/how-tos/use-copilot-agents/coding-agent/extend-coding-agent-with-mcp',
  },
  {
    members: ['timeout'],
    programs: 'Claude Code, Gemini CLI, Kiro (milliseconds), Cline, Roo Code (seconds), opencode',
    effect: 'as `timeoutMs`: below 1,000 it is seconds, and with `autoApprove` or `alwaysAllow` up to 3,600',
    source: ROO,
  },
  { members: ['tool_timeout_sec'], programs: 'Codex', effect: 'as `timeoutMs`', source: CODEX },
  {
    members: ['startup_timeout_sec', 'startup_timeout_ms'],
    programs: 'Codex',
    effect: 'as `connectMs`',
    source: CODEX,
  },
  {
    members: ['autoApprove', 'alwaysAllow', 'trust'],
    programs: 'Cline, Kiro, Roo Code, Gemini CLI',
    effect: 'none: the client asks its user',
    source: CLINE,
  },
  {
    members: ['oauth', 'auth', 'authProviderType'],
    programs: 'Claude Code, Cursor, Gemini CLI, opencode',
    effect: 'none: each person signs in where the server demands it; see `troupe.auth`',
    source: CURSOR,
  },
  { members: ['source', 'settings'], programs: 'Zed', effect: 'none', source: ZED },
  {
    members: [
      'description',
      'dev',
      'gallery',
      'icon',
      'name',
      'version',
      'provider',
      'logoUrl',
      'tags',
      'watchPaths',
      'registryUrl',
      'displayName',
      'bundled',
      'extensionName',
      '$schema',
      'comment',
      '_comment',
      '//',
    ],
    programs: 'several',
    effect: 'none',
    source: VS_CODE,
  },
];

/** The names of all members that some program documents. */
export const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...CLIENT_MEMBERS.flatMap(({ members }) => members),
  'socket',
  'troupe',
]);

/** An entry in the words of this file, whatever program wrote it. */
export interface CommonEntry {
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
};
const SECOND_MS = 1_000;
/** The longest time in seconds that Roo Code and Cline accept. */
const LONGEST_S = 3_600;

/** Reads an entry as its program means it. Members that contradict each other stay, and fail the checks of an entry. */
export function commonEntry(given: JsonObject): CommonEntry {
  const entry: Record<string, JsonValue> = {};
  const options: Record<string, JsonValue> = {};
  const notes: (readonly [string, string])[] = [];
  for (const [member, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const name = SAME[member];
    // An empty address beside a command means no address.
    if (name === undefined) entry[member] = value;
    else if (given[name] === undefined && entry[name] === undefined && value !== '') entry[name] = value;
  }
  splitCommand(entry);
  if (typeof entry.url === 'string' && /^unix:/i.test(entry.url) && entry.socket === undefined) {
    entry.socket = entry.url.replace(/^unix:(?:\/\/)?/i, '');
    delete entry.url;
    delete entry.type;
  }
  addHeaders(entry, given);
  const except = ['disabledTools', 'excludeTools', 'disabled_tools'].flatMap((member) => listOf(given[member]));
  if (except.length > 0) options.except = except;
  const only = ['includeTools', 'enabled_tools', 'tools'].map((member) => given[member]).find(Array.isArray);
  if (only && !only.includes('*')) options.only = only;
  const timeoutMs = timeoutOf(given, notes);
  if (timeoutMs !== undefined) options.timeoutMs = timeoutMs;
  const connectMs =
    positive(given.startup_timeout_ms) ?? seconds(given.startup_timeout_sec) ?? startupOf(given.timeout);
  if (connectMs !== undefined) options.connectMs = connectMs;
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

/** Codex names the variables of headers, so that no secret is in the file. */
function addHeaders(entry: Record<string, JsonValue>, given: JsonObject): void {
  const fromVariables: Record<string, string> = {};
  const named = given.env_http_headers;
  if (isJsonObject(named))
    for (const [header, variable] of Object.entries(named))
      if (typeof variable === 'string') fromVariables[header] = `\${${variable}}`;
  const token = given.bearer_token_env_var;
  if (typeof token === 'string') fromVariables.Authorization = `Bearer \${${token}}`;
  if (Object.keys(fromVariables).length === 0) return;
  entry.headers = { ...(isJsonObject(entry.headers) ? entry.headers : {}), ...fromVariables };
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

function positive(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 ? value : undefined;
}

function seconds(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && value > 0 && value < 1e9 ? Math.ceil(value * SECOND_MS) : undefined;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
