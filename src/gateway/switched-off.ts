/** The servers and tools that a file switches off outside of their entries. A person who did so sees none of them here either. */
import { isJsonObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';
import { matches } from './mounts/names.ts';

interface SwitchedOff {
  /** The member that switches off the server; undefined if none does. */
  readonly by: string | undefined;
  /** Patterns of the names of tools. */
  readonly except: readonly string[];
}

/** Members with the names of servers that are off: Claude Code, and Gemini CLI before it had `mcp.excluded`. */
const EXCLUDED = ['disabledMcpjsonServers', 'disabledMcpServers', 'excludeMCPServers'] as const;

/**
 * @param root the file
 * @param server the name of the entry
 */
export function switchedOff(root: JsonObject, server: string): SwitchedOff {
  const except = [...ofOpencode(root.tools, server), ...ofClaudeCode(root.permissions, server), ...ofAmp(root)];
  return {
    by: except.includes('*') ? 'tools' : serverOff(root, server),
    except: except.filter((each) => each !== '*'),
  };
}

function serverOff(root: JsonObject, server: string): string | undefined {
  const named = EXCLUDED.find((member) => textsIn(root[member]).includes(server));
  if (named !== undefined) return named;
  if (Array.isArray(root.allowMCPServers) && !textsIn(root.allowMCPServers).includes(server)) return 'allowMCPServers';
  // Gemini CLI: the servers are in `mcpServers` then, and `mcp` has rules for them.
  if (!isJsonObject(root.mcp)) return undefined;
  const { allowed, excluded } = root.mcp;
  if (textsIn(excluded).includes(server)) return 'mcp.excluded';
  return Array.isArray(allowed) && !textsIn(allowed).includes(server) ? 'mcp.allowed' : undefined;
}

/** opencode names a tool `server_tool`, with `_` for other characters, and switches it off by a pattern. */
function ofOpencode(tools: JsonValue | undefined, server: string): readonly string[] {
  if (!isJsonObject(tools)) return [];
  const start = `${server.replace(/[^A-Za-z0-9_-]/g, '_')}_`;
  return Object.entries(tools).flatMap(([pattern, on]) => {
    if (on !== false) return [];
    if (pattern === start.slice(0, -1)) return ['*'];
    if (pattern.startsWith(start)) return [pattern.slice(start.length)];
    const stem = pattern.endsWith('*') ? pattern.slice(0, -1) : undefined;
    return stem !== undefined && matches(`${stem}*`, start) ? ['*'] : [];
  });
}

/** Claude Code denies `mcp__server` and `mcp__server__tool`. */
function ofClaudeCode(permissions: JsonValue | undefined, server: string): readonly string[] {
  const denied = isJsonObject(permissions) ? textsIn(permissions.deny) : [];
  const start = `mcp__${server.replace(/[^A-Za-z0-9_-]/g, '_')}`;
  return denied.flatMap((rule) => {
    if (rule === start) return ['*'];
    return rule.startsWith(`${start}__`) ? [rule.slice(start.length + 2)] : [];
  });
}

/** Amp has one list for the tools of all servers, and its own are `builtin:`. */
function ofAmp(root: JsonObject): readonly string[] {
  return textsIn(root['amp.tools.disable']).filter((pattern) => !pattern.startsWith('builtin:'));
}

function textsIn(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
