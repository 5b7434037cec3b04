/** Numbers above 2^53 pass a gateway with their digits, in each place where a message has values of others. */
import { createServer, type MountOptions } from 'troupe';
import type { Channel, ChannelHost } from 'troupe/client';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const test = suite('exact numbers of a mount');

const ID = '1234567890123456789';
/** The number that JavaScript has for it. */
const NEAREST = '1234567890123456800';
const META = `{"example.com/id":${ID},"io.troupe/x":1,"example.com/o":{"id":${ID}}}`;
const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","title":"a\\u200bb","maximum":${ID},"enum":[${ID}]}}}`;
const FORM = `{"type":"object","properties":{"id":{"type":"integer","default":${ID}}},"required":["id"]}`;
const TEXT = `{"type":"text","text":"","_meta":${META}}`;
const LINK = `{"type":"resource_link","uri":"a://1","name":"r","size":${ID},"_meta":${META}}`;
const RESULTS: Readonly<Record<string, string>> = {
  'tools/list': `{"tools":[{"name":"a","title":"a\\u200bb","inputSchema":${SCHEMA},"outputSchema":${SCHEMA},"_meta":${META}}]}`,
  'resources/list': `{"resources":[{"uri":"a://1","name":"r","size":${ID},"_meta":${META}}]}`,
  'resources/templates/list': `{"resourceTemplates":[{"uriTemplate":"b://{x}","name":"t","_meta":${META}}]}`,
  'prompts/list': `{"prompts":[{"name":"p","_meta":${META}}]}`,
  'tools/call': `{"content":[${TEXT},${LINK}],"structuredContent":{"id":${ID},"rows":[[${ID}]]},"_meta":${META}}`,
  'resources/read': `{"contents":[{"uri":"a://1","text":"","_meta":${META}}],"_meta":${META}}`,
  'prompts/get': `{"messages":[{"role":"user","content":${TEXT}}],"_meta":${META}}`,
};
const CAPABILITIES = '"capabilities":{"tools":{},"resources":{},"prompts":{}}';
const UPSTREAM = '"serverInfo":{"name":"up","version":"1"}';

type Era = 'legacy' | 'modern';
/** Sends a request to the gateway. @returns the text of its response, and the texts that the upstream got for it */
type Post = (method: string, params: string) => Promise<{ readonly text: string; readonly sent: string }>;

/** A gateway to one upstream that is written here, and a modern client of the gateway. Both sides are texts. */
async function using(
  era: Era,
  options: MountOptions,
  results: (method: string, text: string) => string | undefined,
  body: (post: Post) => Promise<void>,
): Promise<void> {
  const host = createServer({ name: 'host', version: '1', log() {} });
  let sent = '';
  const channel = (): Channel => {
    let to: ChannelHost | undefined;
    return {
      kind: 'stream',
      open(opened) {
        to = opened;
        to.send({ type: 'opened' });
      },
      send({ text, method }) {
        sent += text;
        const id = /"id":(\d+)/.exec(text)?.[1];
        if (id === undefined || method.startsWith('notifications/')) return;
        const result =
          method === 'server/discover' && era === 'modern'
            ? `{"supportedVersions":["2026-07-28"],${CAPABILITIES},"_meta":{"io.modelcontextprotocol/${UPSTREAM.slice(1)}}}`
            : method === 'initialize' && era === 'legacy'
              ? `{"protocolVersion":"2025-11-25",${CAPABILITIES},${UPSTREAM}}`
              : results(method, text);
        const complete =
          era === 'legacy' || result?.includes('"resultType"')
            ? result
            : `{"resultType":"complete",${result?.slice(1)}`;
        const member =
          result === undefined ? `"error":{"code":-32601,"message":"no","data":{"id":${ID}}}` : `"result":${complete}`;
        to?.send({ type: 'text', text: `{"jsonrpc":"2.0","id":${id},${member}}`, about: undefined });
      },
      abandon() {},
      answered() {},
      close: () => Promise.resolve(),
    };
  };
  const mount = await host.mount('up', { name: 'up', channel }, { pins: 'off', eras: era, ...options });
  await mount.ready();
  let id = 0;
  const post: Post = async (method, params) => {
    id += 1;
    sent = '';
    const described =
      '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}';
    const name = /^\{"(?:name|uri)":"([^"]+)"/.exec(params)?.[1];
    const request = new Request('http://localhost/mcp', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(name ? { 'mcp-name': name } : {}),
      },
      body: `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params.slice(0, -1)}${params === '{}' ? '' : ','}"_meta":{${described},"example.com/id":${ID},"example.com/o":[${ID}]}}}`,
    });
    return { text: await (await host.fetch(request)).text(), sent };
  };
  try {
    await body(post);
  } finally {
    await host.close();
  }
}

/** How often a text has the id. Fails for a text that has the nearest number. */
function ids(text: string): number {
  assert.not.match(text, NEAREST);
  return text.split(ID).length - 1;
}

const ARGUMENTS = `{"id":${ID},"o":{"id":[${ID}]}}`;
const NAMED = '"name":"up_a"';
/** The number of ids that the client gets, and the upstream. */
const REQUESTS: readonly (readonly [
  method: string,
  params: string,
  out: number,
  up: number,
  options?: MountOptions,
])[] = [
  ['tools/list', '{}', 6, 0],
  ['resources/list', '{}', 3, 0],
  ['resources/templates/list', '{}', 2, 0],
  ['prompts/list', '{}', 2, 0],
  ['tools/call', `{${NAMED},"arguments":${ARGUMENTS}}`, 9, 4],
  ['resources/read', '{"uri":"up+a://1"}', 4, 2],
  ['prompts/get', '{"name":"up_p"}', 4, 2],
  ['tools/call', `{"name":"call_tool","arguments":{${NAMED},"arguments":${ARGUMENTS}}}`, 9, 4, { expose: 'search' }],
  ['tools/call', '{"name":"find_tools","arguments":{"query":"up_a"}}', 4, 0, { expose: 'search' }],
];

for (const era of ['legacy', 'modern'] as const) {
  for (const [method, params, out, up, options = {}] of REQUESTS)
    test(`the ids of ${method} pass, with a ${era} upstream: ${params.slice(0, 40)}`, () =>
      using(
        era,
        options,
        (asked) => RESULTS[asked],
        async (post) => {
          const { text, sent } = await post(method, params);
          assert.is(ids(text), out, text);
          assert.is(ids(sent), up, sent);
        },
      ));

  test(`the ids of an error pass, with a ${era} upstream`, () =>
    using(
      era,
      {},
      (asked) => (asked === 'tools/call' ? undefined : RESULTS[asked]),
      async (post) => {
        const { text } = await post('tools/call', `{${NAMED},"arguments":${ARGUMENTS}}`);
        ids(text);
        assert.match(text, 'no');
      },
    ));
}

test('the ids of a question and of its answer pass, and the answer belongs to the arguments with the same digits', () =>
  using(
    'modern',
    {},
    (asked, text) => {
      if (asked !== 'tools/call' || text.includes('"inputResponses"')) return RESULTS[asked];
      return `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"delete?","requestedSchema":${FORM}}}},"requestState":"s"}`;
    },
    async (post) => {
      const { text } = await post('tools/call', `{${NAMED},"arguments":${ARGUMENTS}}`);
      assert.is(ids(text), 1, text);
      const { requestState, inputRequests } = JSON.parse(text).result;
      const [key = ''] = Object.keys(inputRequests);
      const again = `"requestState":"${requestState}","inputResponses":{"${key}":{"action":"accept","content":{"id":${ID}}}}}`;
      const other = await post('tools/call', `{${NAMED},"arguments":${ARGUMENTS.replaceAll(ID, NEAREST)},${again}`);
      assert.match(other.text, 'does not verify');
      assert.is(other.sent, '');
      const { sent } = await post('tools/call', `{${NAMED},"arguments":${ARGUMENTS},${again}`);
      assert.is(ids(sent), 5, sent);
    },
  ));
