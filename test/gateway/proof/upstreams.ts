/** The upstreams of the proof of the gateway: servers of other projects, of several versions of the official packages, and our examples. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { peerFile, type ServedPeer, serveEverything, servePeer } from '../../client/peers.ts';
import { freePort } from '../../harness/free-port.ts';
import { serve } from '../../system/clients/http-wire.ts';
import { command, server } from '../../system/clients/wire.ts';

/** One request, and a text that its result has. */
export interface Step {
  readonly name: string;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly expect: RegExp;
}

/** One upstream, by the names that it gives its elements itself. */
export interface Upstream {
  readonly name: string;
  /** The library that speaks the protocol for it. */
  readonly library: string;
  /** The era that it speaks with the gateway. */
  readonly era: 'legacy' | 'modern';
  /** Its program on stdio, or how its address comes to be. */
  readonly target: Program | (() => Promise<ServedPeer>);
  readonly tool: Step;
  /** Its name is its URI. */
  readonly resource?: Step;
  readonly prompt?: Step;
  /** A tool that asks the client before it answers. */
  readonly question?: Step;
  readonly progress?: Step;
  /** A tool that waits until it is cancelled, and reports progress first if `progress` does. */
  readonly cancel?: Omit<Step, 'expect'>;
}

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** True after `npm ci --prefix bench/peers` of today's list. */
export const haveUpstreams: boolean = existsSync(peerFile('@modelcontextprotocol/inspector-cli/package.json'));

const peer = (file: string, ...args: readonly string[]): Program => ({
  command: process.execPath,
  args: [peerFile(file), ...args],
});

/** A module, as the command serves it. */
function served(file: string): Program {
  const { command: program, args, cwd, env } = command();
  return { command: program, args: [...args, 'run', file], cwd, env };
}

/** An example that listens itself, as the tests compile it. */
function example(file: string): Program {
  const { command, args, cwd, env } = server(file);
  return { command, args, cwd, env };
}

/** The conversation of `bench/peers/conversation`, which several libraries hold. */
const CONVERSATION = {
  tool: { name: 'add', args: { a: 2, b: 3 }, expect: /\b5\b/ },
  resource: { name: 'note://greeting', expect: /good day/ },
  prompt: { name: 'review', args: { language: 'php' }, expect: /Review php/ },
  question: { name: 'ask', expect: /accept large/ },
  progress: { name: 'count', args: { n: 3 }, expect: /counted/ },
} as const;
const CANCELLED = { ...CONVERSATION, cancel: { name: 'wait' } } as const;

const REFERENCE = {
  tool: { name: 'get-sum', args: { a: 2, b: 3 }, expect: /\b5\b/ },
  resource: { name: 'demo://resource/dynamic/text/1', expect: /Resource 1/ },
  prompt: { name: 'args-prompt', args: { city: 'Kyoto' }, expect: /Kyoto/ },
  question: { name: 'trigger-elicitation-request', expect: /accept|provided/i },
  progress: { name: 'trigger-long-running-operation', args: { duration: 0.2, steps: 2 }, expect: /completed/i },
  cancel: { name: 'trigger-long-running-operation', args: { duration: 60, steps: 2 } },
} as const;

const OURS = {
  tool: { name: 'add', args: { a: 2, b: 3 }, expect: /\b5\b/ },
  resource: { name: 'test://static-text', expect: /text/ },
  prompt: { name: 'test_simple_prompt', expect: /messages/ },
  question: { name: 'test_elicitation', args: { message: 'Who?' }, expect: /User response/ },
  progress: { name: 'test_tool_with_progress', expect: /Reported progress/ },
  cancel: { name: 'wait', args: { ms: 60_000 } },
} as const;

/** Every upstream of the proof. @param folder a directory that servers of files may use */
export function upstreams(folder: string): readonly Upstream[] {
  const everything = '@modelcontextprotocol/server-everything/dist/index.js';
  const memory = { name: 'read_graph', expect: /entities/ };
  return [
    { name: 'reference', library: 'SDK 1.32', era: 'legacy', target: peer(everything, 'stdio'), ...REFERENCE },
    { name: 'reference-http', library: 'SDK 1.32', era: 'legacy', target: serveEverything, ...REFERENCE },
    {
      name: 'reference-1-0',
      library: 'SDK 1.0.1',
      era: 'legacy',
      target: peer('everything-1.0/dist/index.js'),
      tool: { name: 'add', args: { a: 2, b: 3 }, expect: /\b5\b/ },
      resource: { name: 'test://static/resource/1', expect: /Resource 1/ },
      prompt: { name: 'simple_prompt', expect: /simple prompt/ },
      question: { name: 'sampleLLM', args: { prompt: 'tea', maxTokens: 5 }, expect: /LLM sampling result/ },
      progress: { name: 'longRunningOperation', args: { duration: 0.2, steps: 2 }, expect: /completed/ },
      cancel: { name: 'longRunningOperation', args: { duration: 60, steps: 2 } },
    },
    {
      name: 'files',
      library: 'SDK 1.32',
      era: 'legacy',
      target: peer('@modelcontextprotocol/server-filesystem/dist/index.js', folder),
      tool: { name: 'list_allowed_directories', expect: /Allowed directories/ },
    },
    {
      name: 'files-0-5',
      library: 'SDK 0.5.0',
      era: 'legacy',
      target: peer('filesystem-0/dist/index.js', folder),
      tool: { name: 'list_allowed_directories', expect: /Allowed directories/ },
    },
    {
      name: 'memory',
      library: 'SDK 1.32',
      era: 'legacy',
      target: peer('@modelcontextprotocol/server-memory/dist/index.js'),
      tool: memory,
    },
    {
      name: 'memory-1-0',
      library: 'SDK 1.0.1',
      era: 'legacy',
      target: peer('memory-1.0/dist/index.js'),
      tool: memory,
    },
    {
      name: 'thinking',
      library: 'SDK 1.32',
      era: 'legacy',
      target: peer('@modelcontextprotocol/server-sequential-thinking/dist/index.js'),
      tool: {
        name: 'sequentialthinking',
        args: { thought: 'tea', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
        expect: /thoughtHistoryLength/,
      },
    },
    { name: 'v1', library: 'SDK 1.32', era: 'legacy', target: peer('v1.mjs', 'stdio'), ...CANCELLED },
    { name: 'v1-http', library: 'SDK 1.32', era: 'legacy', target: () => servePeer('v1.mjs'), ...CANCELLED },
    { name: 'v2', library: 'SDK 2.4', era: 'modern', target: peer('v2.mjs', 'stdio'), ...CANCELLED },
    { name: 'v2-http', library: 'SDK 2.4', era: 'modern', target: () => servePeer('v2.mjs'), ...CANCELLED },
    { name: 'fastmcp', library: 'FastMCP 4', era: 'legacy', target: peer('fastmcp.mjs', 'stdio'), ...CONVERSATION },
    {
      name: 'fastmcp-http',
      library: 'FastMCP 4',
      era: 'legacy',
      target: () => servePeer('fastmcp.mjs'),
      ...CONVERSATION,
    },
    { name: 'tmcp', library: 'tmcp 1', era: 'modern', target: peer('tmcp.mjs', 'stdio'), ...CONVERSATION },
    { name: 'tmcp-http', library: 'tmcp 1', era: 'modern', target: () => servePeer('tmcp.mjs'), ...CONVERSATION },
    {
      name: 'lite-http',
      library: 'mcp-lite 0.10',
      era: 'legacy',
      target: () => servePeer('lite.mjs'),
      ...CONVERSATION,
    },
    { name: 'behind-supergateway', library: 'supergateway 4', era: 'legacy', target: supergateway, ...CONVERSATION },
    {
      name: 'page',
      library: 'SDK 2.0',
      era: 'modern',
      target: peer('@modelcontextprotocol/server-basic-vanillajs/dist/index.js', '--stdio'),
      tool: { name: 'get-time', expect: /\d{4}-\d\d-\d\dT/ },
      resource: { name: 'ui://get-time/mcp-app.html', expect: /<!DOCTYPE html>/i },
    },
    { name: 'everything', library: 'Troupe', era: 'modern', target: example('examples/everything/stdio.ts'), ...OURS },
    {
      name: 'everything-http',
      library: 'Troupe',
      era: 'modern',
      target: async () => {
        const { url, end } = await serve('examples/everything/http.ts');
        return { url, close: async () => void (await end()) };
      },
      ...OURS,
    },
    {
      name: 'hello',
      library: 'Troupe',
      era: 'modern',
      target: example('examples/hello/server.ts'),
      tool: { name: 'greet', args: { name: 'Ada' }, expect: /Hello, Ada!/ },
    },
    {
      name: 'order',
      library: 'Troupe',
      era: 'modern',
      target: served('examples/order/server.ts'),
      tool: { name: 'order_create', args: { customer: 'Ada' }, expect: /Ada/ },
    },
    {
      name: 'refund',
      library: 'Troupe',
      era: 'modern',
      target: served('examples/refund/server.ts'),
      tool: { name: 'refund', args: { order: '7' }, expect: /Paid 42 back for order 7/ },
      question: { name: 'refund', args: { order: '7' }, expect: /Paid 42 back for order 7/ },
    },
  ];
}

/** The server of version 1 on stdio, which supergateway serves over HTTP with sessions. */
async function supergateway(): Promise<ServedPeer> {
  const port = await freePort();
  const v1 = [process.execPath, peerFile('v1.mjs'), 'stdio'].map((word) => JSON.stringify(word)).join(' ');
  const options = ['--outputTransport', 'streamableHttp', '--stateful', '--port', String(port)];
  const file = fileURLToPath(new URL('../../../bench/peers/node_modules/supergateway/dist/index.js', import.meta.url));
  const child = spawn(process.execPath, [file, '--stdio', v1, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  await said(child, /Listening on port/i);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async close() {
      const exit = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await exit;
    },
  };
}

/** Resolves when the program has printed the words on stdout. */
function said(child: ChildProcess, words: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      text = (text + chunk.toString('utf8')).slice(-10_000);
      if (words.test(text)) resolve();
    });
    child.once('exit', (code) => reject(new Error(`it ended with ${code} before it served:\n${text}`)));
  });
}
