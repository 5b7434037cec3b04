/** How to start `mcp-remote`: confined to its home, without a browser. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const PROXY = join(dirname(createRequire(import.meta.url).resolve('mcp-remote/package.json')), 'dist/proxy.js');
const KNOWN = process.allowedNodeEnvironmentFlags;

/** A proxy from stdio to an MCP server over HTTP, with a home of its own, which ends with this process. */
export function mcpRemote(url: string, ...options: readonly string[]): StdioClientTransport {
  const home = mkdtempSync(join(realpathSync(tmpdir()), 'mcp-remote-'));
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
  return new StdioClientTransport({
    command: process.execPath,
    args: [...confined(home), PROXY, url, '--allow-http', ...options],
    env: { HOME: home, USERPROFILE: home, NODE_NO_WARNINGS: '1' },
    stderr: 'pipe',
  });
}

/** Lets the proxy write nowhere but in its home, and start nothing: no browser either. */
function confined(home: string): readonly string[] {
  const permission = KNOWN.has('--permission') ? '--permission' : '--experimental-permission';
  const network = KNOWN.has('--allow-net') ? ['--allow-net'] : [];
  return [permission, '--allow-fs-read=*', `--allow-fs-write=${home}${sep}`, ...network];
}
