/** The client under test of the official conformance suite: `npm run --silent conformance:client -- URL`. */

import {
  type Client,
  ClientError,
  type ConnectOptions,
  connect,
  type OAuthOptions,
  oauth,
} from '../../../src/client/client.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import type { Tool } from '../../../src/core/protocol/types.ts';

const [, , address = ''] = process.argv;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const revision = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '';
const context: Readonly<Record<string, unknown>> = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

const options: ConnectOptions = {
  name: 'troupe-conformance-client',
  version: '1.0.0',
  eras: revision.startsWith('2026') ? 'modern' : revision === '' ? 'auto' : 'legacy',
  elicit: (form) =>
    form.requestedSchema.properties && 'confirmed' in Object(form.requestedSchema.properties)
      ? { confirmed: true }
      : {},
  sample: () => ({ role: 'assistant', content: { type: 'text', text: 'four' }, model: 'none', stopReason: 'endTurn' }),
  roots: () => [],
};

type Run = (client: Client) => Promise<unknown>;

const listAndCall: Run = async (client) => {
  const [tool] = await client.tools();
  if (tool) await client.call(tool.name, argumentsOf(tool));
};

const listed: Run = async (client) => {
  await client.tools();
};

/** Loads each skill with its files, as a host does; a skill that fails its verification is refused. */
const loadSkills: Run = async (client) => {
  for (const entry of await client.skills())
    try {
      const skill = await client.skill(entry);
      for (const { uri } of skill.files === 'dynamic' ? [] : skill.files) await skill.read(uri);
    } catch (error) {
      if (!(error instanceof ClientError) || error.reason !== 'malformed') throw error;
      process.stderr.write(`${error.message}\n`);
    }
};

const RUNS: Readonly<Record<string, Run>> = {
  initialize: listed,
  tools_call: listAndCall,
  'elicitation-sep1034-client-defaults': (client) => client.call('test_client_elicitation_defaults'),
  'sse-retry': (client) => client.call('test_reconnection'),
  'request-metadata': listed,
  'json-schema-ref-no-deref': listed,
  async 'json-schema-2020-12-preservation'(client) {
    const tools = await client.tools();
    const schema = tools.find(({ name }) => name === 'json_schema_2020_12_tool')?.inputSchema;
    if (!schema) throw new Error('expected the tool json_schema_2020_12_tool');
    await client.call('json_schema_echo', { schema });
  },
  async 'sep-2322-client-request-state'(client) {
    await client.tools();
    // The unrelated call runs between the rounds of the first.
    await Promise.all([client.call('test_mrtr_echo_state', {}), client.call('test_mrtr_unrelated', {})]);
    await client.call('test_mrtr_no_state', {});
    await client.call('test_mrtr_no_result_type', {});
  },
  async 'http-standard-headers'(client) {
    const [tool] = await client.tools();
    if (tool) await client.call(tool.name, argumentsOf(tool));
    const [resource] = await client.resources();
    if (resource) await client.read(resource.uri);
    const [prompt] = await client.prompts();
    if (prompt) await client.prompt(prompt.name);
  },
  async 'http-custom-headers'(client) {
    await client.tools();
    for (const { name, arguments: args } of callsOf(context)) await client.call(name, args);
  },
  async 'http-invalid-tool-headers'(client) {
    for (const tool of await client.tools()) await client.call(tool.name, argumentsOf(tool));
  },
  'sep-2640-client-no-prefetch': (client) => client.skills(),
  'sep-2640-client-verify-digest': loadSkills,
  'sep-2640-client-verify-size': loadSkills,
  'sep-2640-client-verify-frontmatter': loadSkills,
};

function argumentsOf({ inputSchema }: Tool): JsonObject {
  const values: Record<string, string | number | boolean> = {};
  for (const [name, property] of Object.entries(Object(inputSchema.properties) as Record<string, JsonObject>))
    values[name] =
      property.type === 'number' || property.type === 'integer'
        ? name === 'a'
          ? 5
          : 3
        : property.type === 'boolean'
          ? true
          : 'value';
  return values;
}

interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
}

function callsOf(given: Readonly<Record<string, unknown>>): readonly ToolCall[] {
  const calls = given.toolCalls;
  return Array.isArray(calls) ? calls : [];
}

/** The suite's authorization server redirects at once, so that the browser is one request. */
async function authorize(url: URL): Promise<URL> {
  const response = await fetch(url, { redirect: 'manual' });
  const location = response.headers.get('location');
  if (location === null) throw new Error(`expected a redirect, got HTTP ${response.status}`);
  return new URL(location, url);
}

function text(name: string): string {
  const value = context[name];
  return typeof value === 'string' ? value : '';
}

const SIGN_IN: OAuthOptions = {
  clientName: 'Troupe conformance',
  authorize,
  redirectUrl: 'http://127.0.0.1:3333/callback',
};
const CREDENTIALS: OAuthOptions = { clientId: text('client_id'), clientSecret: text('client_secret') };
const SIGN_INS: Readonly<Record<string, () => OAuthOptions>> = {
  'auth/basic-cimd': () => ({ ...SIGN_IN, clientId: 'https://conformance-test.local/client-metadata.json' }),
  'auth/pre-registration': () => ({ ...SIGN_IN, ...CREDENTIALS }),
  'auth/client-credentials-basic': () => ({ ...CREDENTIALS, grant: 'client_credentials' }),
  'auth/client-credentials-jwt': () => ({
    clientId: text('client_id'),
    privateKey: text('private_key_pem'),
    grant: 'client_credentials',
  }),
  'auth/wif-jwt-bearer': () => ({ clientId: text('client_id'), assertion: () => text('valid_jwt') }),
  'auth/enterprise-managed-authorization': () => ({
    ...CREDENTIALS,
    exchange: {
      tokenEndpoint: text('idp_token_endpoint'),
      clientId: text('idp_client_id'),
      idToken: () => text('idp_id_token'),
    },
  }),
};

const auth = scenario.startsWith('auth/') ? oauth((SIGN_INS[scenario] ?? (() => SIGN_IN))()) : undefined;
const client = await connect({ url: address, ...(auth ? { auth } : {}) }, options);
try {
  await (RUNS[scenario] ?? (scenario.startsWith('auth/') ? listAndCall : listAndCall))(client);
} finally {
  await client.close();
}
