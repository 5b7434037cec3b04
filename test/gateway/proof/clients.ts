/** The clients of the proof of the gateway: the official ones of both versions and eras, mcp-remote, the official inspector and our own. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import type { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { type ConnectTarget, connect } from 'troupe/client';
import { peerFile } from '../../client/peers.ts';
import { HttpWire, type Served } from '../../system/clients/http-wire.ts';
import { mcpRemote } from '../../system/clients/mcp-remote.ts';
import type { Loose, OfficialClient } from '../../system/clients/official.ts';
import { connected as connectedV1 } from '../../system/clients/v1.ts';
import { connected as connectedV2, type Negotiation } from '../../system/clients/v2.ts';
import { StdioWire, type Wire } from '../../system/clients/wire.ts';

const run = promisify(execFile);

/** A connected client, and what it can do. */
export interface ProofClient
  extends Pick<
    OfficialClient,
    'listTools' | 'listResources' | 'listPrompts' | 'callTool' | 'readResource' | 'getPrompt' | 'close'
  > {
  /** Asks, shows progress and cancels: a command that makes one request does not. */
  readonly converses: boolean;
  /** Reports of progress that it has got so far. */
  reports(): number;
  /** What the gateway has logged, where the client sees it. */
  log(): string;
  /** Messages that broke the schema of the revision. */
  faults(): readonly string[];
}

/** How to start the gateway on stdio. */
export interface Started {
  readonly command: string;
  readonly args: string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
}

interface Stdio {
  readonly over: 'stdio';
  connect(gateway: Started): Promise<ProofClient>;
}

interface Http {
  readonly over: 'http';
  connect(gateway: Served): Promise<ProofClient>;
}

/** A client by its name. */
export type Contender = { readonly name: string; readonly era: 'legacy' | 'modern' } & (Stdio | Http);

const OOLONG = { role: 'assistant', model: 'tea-1', content: { type: 'text', text: 'oolong' } } as const;
const CAPABILITIES = { elicitation: { form: {} }, sampling: {} };

/** Fills in a form: a choice that it proposes, the first one, or a value of the type. */
export function filledIn(schema: unknown): Record<string, string | number | boolean> {
  const properties: Record<string, unknown> = Object(Object(schema).properties);
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      const { type, format, default: proposed, enum: choices, oneOf } = Object(property);
      if (proposed !== undefined) return [name, proposed];
      if (Array.isArray(choices)) return [name, choices[0]];
      if (Array.isArray(oneOf)) return [name, Object(oneOf[0]).const];
      if (type === 'boolean') return [name, true];
      if (type === 'number' || type === 'integer') return [name, 1];
      if (name === 'size') return [name, 'large'];
      return [name, format === 'email' ? 'ada@example.com' : 'Ada'];
    }),
  );
}

function preparedV1(client: ClientV1): void {
  client.registerCapabilities(CAPABILITIES);
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({
    action: 'accept',
    content: filledIn(Object(params).requestedSchema),
  }));
  client.setRequestHandler(CreateMessageRequestSchema, () => OOLONG);
}

function preparedV2(client: ClientV2): void {
  client.registerCapabilities(CAPABILITIES);
  client.setRequestHandler('elicitation/create', ({ params }) => ({
    action: 'accept',
    content: filledIn(Object(params).requestedSchema),
  }));
  client.setRequestHandler('sampling/createMessage', () => OOLONG);
}

/** An official client, with what its wire saw. */
function official<W extends Wire>(client: OfficialClient<W>): ProofClient {
  return {
    ...client,
    converses: true,
    reports: () => client.wire.notifications('notifications/progress').length,
    log: () => client.wire.printed,
    faults: () => [...client.wire.faults.splice(0), ...client.wire.noise.splice(0)],
  };
}

function v1Stdio(): Stdio {
  return {
    over: 'stdio',
    async connect(gateway) {
      const transport = new StdioV1({ ...gateway, stderr: 'pipe' });
      const client = await connectedV1(transport, new StdioWire(transport, '2025-11-25'), undefined, preparedV1);
      return official(client);
    },
  };
}

function v2Stdio(negotiation: Negotiation): Stdio {
  return {
    over: 'stdio',
    async connect(gateway) {
      const transport = new StdioV2({ ...gateway, stderr: 'pipe' });
      const wire = new StdioWire(transport, negotiation === 'auto' ? '2026-07-28' : '2025-11-25');
      return official(await connectedV2(transport, wire, negotiation, undefined, preparedV2));
    },
  };
}

const v1Http: Http = {
  over: 'http',
  async connect(gateway) {
    const wire = new HttpWire(gateway, '2025-11-25');
    const transport = new HttpV1(wire.url, { fetch: wire.fetch });
    const client = await connectedV1(transport, wire, () => transport.terminateSession(), preparedV1);
    return official(client);
  },
};

function v2Http(negotiation: Negotiation): Http {
  return {
    over: 'http',
    async connect(gateway) {
      const wire = new HttpWire(gateway, negotiation === 'auto' ? '2026-07-28' : '2025-11-25');
      const transport = new HttpV2(wire.url, { fetch: wire.fetch });
      const client = await connectedV2(transport, wire, negotiation, () => transport.terminateSession(), preparedV2);
      return official(client);
    },
  };
}

const remote: Http = {
  over: 'http',
  async connect(gateway) {
    const transport = mcpRemote(gateway.url);
    const client = await connectedV1(transport, new StdioWire(transport, '2025-11-25'), undefined, preparedV1);
    return official(client);
  },
};

/** Our own client. */
async function ours(target: ConnectTarget, eras: 'legacy' | 'modern'): Promise<ProofClient> {
  let reports = 0;
  const client = await connect(target, {
    eras,
    connectMs: 120_000,
    probeMs: 120_000,
    timeoutMs: 120_000,
    elicit: ({ requestedSchema }) => filledIn(requestedSchema),
    sample: () => OOLONG,
    log() {},
  });
  return {
    converses: true,
    reports: () => reports,
    log: () => '',
    faults: () => [],
    listTools: async () => (await client.tools()).map((tool) => ({ ...tool })),
    listResources: async () => (await client.resources()).map((resource) => ({ ...resource })),
    listPrompts: async () => (await client.prompts()).map((prompt) => ({ ...prompt })),
    callTool: async (name, args, { signal } = {}) => ({
      ...(await client.call(name, JSON.parse(JSON.stringify(args ?? {})), {
        ...(signal ? { signal } : {}),
        onProgress: () => {
          reports += 1;
        },
      })),
    }),
    readResource: async (uri) => ({ ...(await client.read(uri)) }),
    getPrompt: async (name, args) => ({ ...(await client.prompt(name, args)) }),
    close: () => client.close(),
  };
}

/**
 * The command of the official inspector in the directory of the inspector: alone, as it is published, it does not find its
 * package.json.
 *
 * @returns its program
 */
function inspectorProgram(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'inspector-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const command = peerFile('@modelcontextprotocol/inspector-cli');
  cpSync(join(command, 'build'), join(folder, 'cli/build'), { recursive: true });
  cpSync(join(command, 'package.json'), join(folder, 'package.json'));
  symlinkSync(peerFile(''), join(folder, 'node_modules'), 'junction');
  return join(folder, 'cli/build/cli.js');
}

/** The official inspector's command: one process and one connection for each request. */
const inspector: Http = {
  over: 'http',
  async connect({ url }) {
    const program = inspectorProgram();
    const request = async (...words: readonly string[]): Promise<Loose> => {
      const args = [program, '--cli', url, '--transport', 'http'];
      const { stdout } = await run(process.execPath, [...args, ...words], { maxBuffer: 2 ** 26, timeout: 120_000 });
      return JSON.parse(stdout);
    };
    const list = async (method: string, member: string): Promise<readonly Loose[]> => {
      const items = (await request('--method', method))[member];
      return Array.isArray(items) ? items : [];
    };
    const pairs = (option: string, args: object = {}): readonly string[] =>
      Object.entries(args).flatMap(([name, value]) => [
        option,
        `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
      ]);
    return {
      converses: false,
      reports: () => 0,
      log: () => '',
      faults: () => [],
      listTools: () => list('tools/list', 'tools'),
      listResources: () => list('resources/list', 'resources'),
      listPrompts: () => list('prompts/list', 'prompts'),
      callTool: (name, args) => request('--method', 'tools/call', '--tool-name', name, ...pairs('--tool-arg', args)),
      readResource: (uri) => request('--method', 'resources/read', '--uri', uri),
      getPrompt: (name, args) =>
        request('--method', 'prompts/get', '--prompt-name', name, ...pairs('--prompt-args', args)),
      close: async () => {},
    };
  },
};

const LEGACY = { initialize: '2025-11-25' } as const;

/** Every client of the proof. */
export const CONTENDERS: readonly Contender[] = [
  { name: 'SDK 1', era: 'legacy', ...v1Stdio() },
  { name: 'SDK 2', era: 'legacy', ...v2Stdio(LEGACY) },
  { name: 'SDK 2', era: 'modern', ...v2Stdio('auto') },
  ...(['legacy', 'modern'] as const).map(
    (era): Contender => ({
      name: 'Troupe',
      era,
      over: 'stdio',
      connect: (gateway) => ours(gateway, era),
    }),
  ),
  { name: 'SDK 1', era: 'legacy', ...v1Http },
  { name: 'SDK 2', era: 'legacy', ...v2Http(LEGACY) },
  { name: 'SDK 2', era: 'modern', ...v2Http('auto') },
  ...(['legacy', 'modern'] as const).map(
    (era): Contender => ({
      name: 'Troupe',
      era,
      over: 'http',
      connect: ({ url }) => ours(url, era),
    }),
  ),
  { name: 'mcp-remote', era: 'legacy', ...remote },
  { name: 'inspector', era: 'legacy', ...inspector },
];
