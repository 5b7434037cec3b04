/** Clients of every kind for servers with apps: with and without the extension, of each era. */

import type { JsonObject } from '../../../src/core/protocol/json.ts';
import type { Server } from '../../../src/index.ts';
import { connect, type TestClient } from '../../../src/testing/testing.ts';

export const PAGE =
  '<!doctype html><html><head><title>Board</title></head><body><script>start()</script></body></html>';

export const VIEWS: JsonObject = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } };
/** The `_meta` of a modern client that shows views. */
export const WITH_VIEWS: JsonObject = { 'io.modelcontextprotocol/clientCapabilities': { extensions: VIEWS } };

/** A client in a session, which shows views or does not. */
export async function session(server: Server, revision: string, views: boolean): Promise<TestClient> {
  const client = await connect(server, { auth: { principal: 'ada' } });
  await client.initialize(revision, views ? { extensions: VIEWS } : {});
  return client;
}

type Method = 'tools/list' | 'resources/list' | 'resources/templates/list';

const MEMBERS: Readonly<Record<Method, string>> = {
  'tools/list': 'tools',
  'resources/list': 'resources',
  'resources/templates/list': 'resourceTemplates',
};

/** The definitions of a list, whole. */
export function itemsOf(method: Method, result: JsonObject): readonly JsonObject[] {
  const items = result[MEMBERS[method]];
  return Array.isArray(items) ? items.map((item) => Object(item)) : [];
}

/** The names in a list. */
export async function namesOf(client: TestClient, method: Method, meta?: JsonObject): Promise<readonly unknown[]> {
  const result = meta ? await client.modern(method, {}, meta) : await client.send(method);
  return itemsOf(method, result).map(({ name }) => name);
}

/** The message with which something is rejected; `nothing` if it is not. */
export function refusalOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'nothing',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}
