/** A server whose tool is one operation of an API on this machine: what the tests of requests, responses and credentials share. */
import { randomInt } from 'node:crypto';
import type { Clock } from '../../../src/core/kernel/clock.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { CallToolResult } from '../../../src/core/protocol/types.ts';
import { StateKeys } from '../../../src/core/store/state-keys.ts';
import type { Vault } from '../../../src/core/store/vault.ts';
import { SignIns } from '../../../src/gateway/mounts/sign-ins.ts';
import type { ApiOperation, CompiledDocument, OperationRequest } from '../../../src/gateway/openapi/operation.ts';
import { type OperationCallerOptions, openOperationCaller } from '../../../src/gateway/openapi/operation-caller.ts';
import { createServer, memory, type Server, ToolError } from '../../../src/index.ts';
import { TestClient } from '../../../src/testing/testing.ts';
import { SECRET } from '../../features/asking/support.ts';

export const BASE = 'https://api.example.com/v1';

/** The request of an operation. */
export function requestOf(more: Partial<OperationRequest> = {}): OperationRequest {
  return {
    method: 'GET',
    path: '/pets/{id}',
    base: BASE,
    parameters: [],
    accept: 'application/json, */*;q=0.1',
    security: [],
    responses: { media: ['application/json'], accepted: false },
    ...more,
  };
}

/** A parameter with the defaults of its place (OpenAPI 3.1, "Parameter Object"). */
export function parameterOf(
  name: string,
  place: 'path' | 'query' | 'header',
  more: Partial<OperationRequest['parameters'][number]> = {},
): OperationRequest['parameters'][number] {
  const style = place === 'query' ? 'form' : 'simple';
  return {
    ...{ argument: name, name, in: place, style, explode: (more.style ?? style) === 'form' },
    ...{ allowReserved: false, json: false, required: true, ...more },
  };
}

/** A document of one operation, the tool `use`. */
export function documentOf(
  request: OperationRequest,
  more: Partial<CompiledDocument> = {},
  defaults: JsonObject = {},
): CompiledDocument {
  const operation: ApiOperation = {
    tool: { name: 'use', inputSchema: { type: 'object' } },
    checked: {},
    defaults,
    request,
  };
  return {
    ...{ info: { title: 'Pets', version: '1' }, operations: [operation], securitySchemes: {} },
    ...{ warnings: [], skipped: [], documented: new Map(), webhooks: 0, trusted: [], ...more },
  };
}

/** Secrets in memory, as they are. */
export function memoryVault(): Vault & { readonly entries: Map<string, string> } {
  const entries = new Map<string, string>();
  return {
    entries,
    get: (principal, purpose) => Promise.resolve(entries.get(`${principal} ${purpose}`)),
    set: (principal, purpose, secret) => Promise.resolve(void entries.set(`${principal} ${purpose}`, secret)),
    delete: (principal, purpose) => Promise.resolve(void entries.delete(`${principal} ${purpose}`)),
  };
}

export interface ApiStageOptions extends Partial<Omit<OperationCallerOptions, 'signIns' | 'clock'>> {
  readonly clock?: Clock;
  readonly request?: Partial<OperationRequest>;
  readonly schemes?: CompiledDocument['securitySchemes'];
  readonly defaults?: JsonObject;
  readonly vault?: Vault;
  readonly server?: Partial<Parameters<typeof createServer>[0]>;
}

/** A gateway without resources. */
export function unreadable(): Promise<never> {
  return Promise.reject(new ToolError('there is no resource here'));
}

export interface ApiStage {
  readonly server: Server;
  readonly signIns: SignIns;
  /** What the operator was told. */
  readonly told: readonly string[];
  call(args?: JsonObject, meta?: JsonObject): Promise<CallToolResult>;
  /** Sends a request of a modern client that may be asked to open pages. */
  send(params: JsonObject, capabilities?: JsonObject): Promise<JsonObject>;
  connect(principal?: string): TestClient;
  close(): Promise<void>;
}

/** @param api its address */
export async function apiStage(api: string, options: ApiStageOptions = {}): Promise<ApiStage> {
  const { request, schemes = {}, defaults = {}, vault = memoryVault(), clock, server: more, ...rest } = options;
  const told: string[] = [];
  const server = createServer({
    name: 'desk',
    version: '1.0.0',
    keys: [SECRET],
    ...(clock && { clock }),
    log: (level, message) => void told.push(`${level}: ${message}`),
    ...more,
  });
  const { systemClock } = await import('../../../src/core/kernel/clock.ts');
  const time = clock ?? systemClock;
  const log = (level: string, message: string): void => void told.push(`${level}: ${message}`);
  const keys = new StateKeys([SECRET]);
  const signIns = new SignIns({ keys, vault, clock: time, log, addresses: () => [] });
  const base = `${api}/v1`;
  const document = documentOf(requestOf({ base, ...request }), { securitySchemes: schemes }, defaults);
  const [operation] = document.operations;
  const caller = openOperationCaller({
    ...{
      mount: 'pets',
      clock: time,
      log,
      signIns,
      trusted: [new URL(base)],
      maxResultLength: 50_000,
      readResource: unreadable,
    },
    ...rest,
  });
  server.tool('use', { input: { type: 'object' }, task: 'allowed' }, (args: unknown, ctx) => {
    if (!operation) throw new Error('expected an operation');
    return caller.call(document, operation, args as JsonObject, ctx);
  });
  const { transport, connect } = memory();
  await server.listen(transport);
  const clients = new Map<string, TestClient>();
  const clientOf = (principal = 'local user'): TestClient => {
    const client = clients.get(principal) ?? new TestClient(connect({ principal }));
    clients.set(principal, client);
    return client;
  };
  const send = (params: JsonObject, capabilities: JsonObject = {}, meta: JsonObject = {}): Promise<JsonObject> =>
    clientOf().modern(
      'tools/call',
      { name: 'use', arguments: {}, ...params },
      {
        [META.clientCapabilities]: capabilities,
        ...meta,
      },
    );
  return {
    server,
    signIns,
    told,
    connect: clientOf,
    send,
    call: (args = {}, meta = {}) => send({ arguments: args }, {}, meta) as Promise<unknown> as Promise<CallToolResult>,
    async close() {
      signIns.close();
      await caller.close();
      await server.close();
    },
  };
}

/** A text that contains what requests must encode: delimiters, line breaks, percent signs, emoji. */
export function oddText(most = 12): string {
  const parts = [
    'a',
    'Z',
    '0',
    '-',
    '.',
    '_',
    '~',
    '/',
    '?',
    '#',
    '&',
    '=',
    '+',
    ' ',
    '%',
    '%2F',
    '%zz',
    '\\',
    '[',
    ']',
  ];
  parts.push('{', '}', '|', ',', ';', ':', '@', '$', '!', "'", '(', ')', '*', '"', '<', '>', '^', '`', 'é', '日', '😀');
  const length = randomInt(1, most + 1);
  return Array.from({ length }, () => parts[randomInt(parts.length)] ?? '').join('');
}
