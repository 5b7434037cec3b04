/** A server whose tools ask, and what a client of each era says to it. */

import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Server, ServerOptions } from '../../../src/index.ts';
import { connect, SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { loggedServer } from '../../harness/memory.ts';

export const SECRET = 'a secret that is long enough to be one of this server';
/** What a client declares that can be asked anything. */
export const ALL: JsonObject = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export interface Stage {
  readonly server: Server;
  readonly clock: SimulatedClock;
  /** What the operator was told. */
  readonly told: readonly string[];
}

export function stage(options: Partial<ServerOptions> = {}, clock = new SimulatedClock()): Stage {
  const { server, logged: told } = loggedServer({ name: 'asking', clock, keys: [SECRET], ...options });
  return { server, clock, told };
}

/** What a request is answered with that needs more. */
export interface InputRequired {
  readonly inputRequests: Readonly<Record<string, { readonly method: string; readonly params: JsonObject }>>;
  readonly requestState: string;
}

function isInputRequired(result: JsonObject): result is JsonObject & InputRequired {
  return result.resultType === 'input_required';
}

/** A client of the modern era that can be asked. */
export class Modern {
  readonly client: TestClient;
  readonly #capabilities: JsonObject;

  constructor(client: TestClient, capabilities: JsonObject = ALL) {
    this.client = client;
    this.#capabilities = capabilities;
  }

  static async of(server: Server, capabilities?: JsonObject): Promise<Modern> {
    return new Modern(await connect(server), capabilities);
  }

  send(params: JsonObject, method = 'tools/call', meta: JsonObject = {}): Promise<JsonObject> {
    return this.client.modern(method, params, { [META.clientCapabilities]: this.#capabilities, ...meta });
  }

  /** Calls a tool that must ask. */
  async ask(name: string, more: JsonObject = {}, method?: string): Promise<InputRequired> {
    const result = await this.send({ name, ...more }, method);
    if (isInputRequired(result)) return result;
    throw new Error(`expected a result that asks, got ${JSON.stringify(result)}`);
  }

  /** Comes back with answers. */
  retry(name: string, requestState: string, inputResponses: JsonObject, more: JsonObject = {}): Promise<JsonObject> {
    return this.send({ name, requestState, inputResponses, ...more });
  }
}

export function accept(content: JsonObject): JsonObject {
  return { action: 'accept', content };
}

/** The text of a result, or what it is instead. */
