/** A shop whose refunds need approvals, and clients that can or cannot be asked. */
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import {
  type Approval,
  ApprovalError,
  type ApprovalPolicy,
  type Approver,
  type AuditRecord,
  type Server,
  type ServerOptions,
} from '../../../src/index.ts';
import { isObjectInTest } from '../../../src/testing/test-json.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { loggedServer } from '../../harness/memory.ts';
import { textOf } from '../../harness/results.ts';

export const SECRET = 'a secret that is long enough to be one of this server';
export const ASKABLE: JsonObject = { elicitation: { form: {} } };
export const OPS: Approver = { principal: 'olga', scopes: ['ops'] };
export const ALSO_OPS: Approver = { principal: 'otto', scopes: ['ops'] };
export const BY_OPS: ApprovalPolicy = { by: { scope: 'ops' } };

export interface Shop {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly told: readonly string[];
  readonly audit: readonly AuditRecord[];
  /** The arguments of the refunds that ran. */
  readonly ran: readonly unknown[];
  /** The result of the next refunds: a promise of it, to stop in the middle. */
  work: () => unknown;
}

export const INPUT = {
  type: 'object',
  properties: { order: { type: 'string' }, amount: { type: 'number' } },
  required: ['order', 'amount'],
} as const;

/** @param policy undefined: the test registers its own rules */
export function shop(
  policy: ApprovalPolicy | undefined,
  options: Partial<ServerOptions> = {},
  clock = new SimulatedClock(),
): Shop {
  const audit: AuditRecord[] = [];
  const ran: unknown[] = [];
  const { server, logged: told } = loggedServer({
    ...{ name: 'shop', clock, keys: [SECRET], audit: { to: (record) => void audit.push(record) } },
    ...options,
  });
  const made: Shop = { server, clock, told, audit, ran, work: () => 'refunded' };
  server.tool('refund', { input: INPUT, title: 'Refund' }, async (args) => {
    ran.push(args);
    return made.work();
  });
  if (policy)
    server.authorize(({ element }) => element.name !== 'refund' || { approve: policy }, {
      name: 'refunds',
      version: '1',
    });
  return made;
}

export const CALL = { order: '17', amount: 120 };

/** A client of one principal. */
export function as(server: Server, principal = 'ada', scopes?: readonly string[]): Promise<TestClient> {
  return connect(server, { auth: { principal, ...(scopes ? { scopes } : {}) } });
}

/** Calls the refund by a client of 2026-07-28. */
export function refund(
  client: TestClient,
  args: JsonObject = CALL,
  capabilities: JsonObject = {},
  more: JsonObject = {},
): Promise<JsonObject> {
  return client.modern(
    'tools/call',
    { name: 'refund', arguments: args, ...more },
    { [META.clientCapabilities]: capabilities },
  );
}

/** The question of a result, and the retry with an answer. */
export function questionOf(result: JsonObject): {
  readonly key: string;
  readonly message: string;
  readonly state: string;
} {
  const { inputRequests, requestState } = result;
  const [key, question] = isObjectInTest(inputRequests) ? (Object.entries(inputRequests)[0] ?? []) : [];
  const params = isObjectInTest(question) && isObjectInTest(question.params) ? question.params : {};
  if (key === undefined || typeof requestState !== 'string')
    throw new Error(`expected a question, got ${JSON.stringify(result)}`);
  return { key, message: String(params.message), state: requestState };
}

/** The answer of a user in the form. */
export function answer(decision: string, more: JsonObject = {}): JsonObject {
  return { action: 'accept', content: { decision, ...more } };
}

/** Calls with a client that can be asked, and answers its question. */
export async function answered(client: TestClient, reply: JsonObject, args: JsonObject = CALL): Promise<JsonObject> {
  const { key, state } = questionOf(await refund(client, args, ASKABLE));
  return refund(client, args, ASKABLE, { requestState: state, inputResponses: { [key]: reply } });
}

/** What a result says of its approval. */
export function metaOf(result: JsonObject): JsonObject {
  const meta = isObjectInTest(result._meta) ? result._meta[META.approval] : undefined;
  return isObjectInTest(meta) ? meta : {};
}

/** The id of the approval that a call waits for. */
export function pendingId(result: JsonObject): string {
  const { id, state } = metaOf(result);
  assert.is(result.isError, true);
  assert.ok(state === 'asked' || state === 'partly approved', JSON.stringify(result));
  return String(id);
}

export function textIn(result: { readonly content?: unknown }): string {
  return textOf(result);
}

/** The fault of a decision. */
export async function faultOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof ApprovalError ? error.fault : `another error: ${String(error)}`;
  }
  return 'none';
}

export async function theOnly(server: Server): Promise<Approval> {
  const [first, ...more] = await server.approvals.list();
  assert.is(more.length, 0);
  if (!first) throw new Error('expected one open approval, got none');
  return first;
}

/** The outcomes of the approvals in the audit. */
export function outcomes({ audit }: Shop): readonly string[] {
  return audit.flatMap(({ event, outcome }) => (event === 'approval' && outcome !== undefined ? [outcome] : []));
}
