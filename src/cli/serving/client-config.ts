/** Tells how MCP clients are connected to a server that is served over HTTP. */

/**
 * @param name what the clients are to call the server
 * @returns lines for people
 */
export function clientConfig(name: string, url: string): readonly string[] {
  const config = (entry: object): string => JSON.stringify({ mcpServers: { [name]: entry } });
  return [
    `Claude Code     claude mcp add --transport http ${name} ${url}`,
    `VS Code         code --add-mcp '${JSON.stringify({ name, type: 'http', url })}'`,
    `Cursor          in ~/.cursor/mcp.json: ${config({ url })}`,
    `Claude Desktop  in claude_desktop_config.json: ${config({ command: 'npx', args: ['-y', 'mcp-remote', url] })}`,
  ];
}

/** A name that every client takes, also on a command line. */
export function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'server';
}
