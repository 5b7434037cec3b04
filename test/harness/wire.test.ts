/** The check of the wire itself: it lets through what the specification has, and finds what it has not. */
import * as assert from 'uvu/assert';
import type { Revision } from '../../src/core/protocol/revisions.ts';
import { suite } from './door.ts';
import { checkWire, type Direction, wireChecker } from './wire.ts';
import { haveOfficialSchemas } from './wire-schemas.ts';

const test = suite('the wire check');
const official = suite('the wire check, official JSON schemas');

const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';
const SERVER = '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}';

const result = (body: string): string => `{"jsonrpc":"2.0","id":1,"result":${body}}`;
const error = (body: string, id = '"id":1,'): string => `{"jsonrpc":"2.0",${id}"error":${body}}`;

/** Plays a conversation to a new checker. */
function talk(revision: Revision, ...said: readonly (readonly [Direction, string])[]): void {
  const check = wireChecker(revision);
  for (const [direction, text] of said) check(direction, text);
}

const ASK = ['in', '{"jsonrpc":"2.0","id":1,"method":"ping"}'] as const;
const OPEN = [
  [
    'in',
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}',
  ],
  [
    'out',
    '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}',
  ],
] as const;

test('lets through what fits, in every revision', () => {
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const) {
    checkWire({ revision, direction: 'out', method: 'ping', text: result('{}') });
    checkWire({
      revision,
      direction: 'out',
      method: 'tools/call',
      text: result('{"content":[{"type":"text","text":"a"}]}'),
    });
    checkWire({ revision, direction: 'out', text: error('{"code":-32002,"message":"m"}') });
    checkWire({ revision, direction: 'out', text: '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}' });
    checkWire({ revision, direction: 'in', text: '{"jsonrpc":"2.0","id":1,"method":"anything"}' });
  }
  checkWire({
    revision: '2026-07-28',
    direction: 'out',
    method: 'tools/list',
    text: result(`{"resultType":"complete",${SERVER},"tools":[],"ttlMs":0,"cacheScope":"public"}`),
  });
});

for (const [what, revision, method, text] of [
  ['content of no known type', '2025-06-18', 'tools/call', result('{"content":[{"type":"smell","text":"a"}]}')],
  ['a tool without a schema', '2025-11-25', 'tools/list', result('{"tools":[{"name":"a"}]}')],
  ['an answer to ping with something in it', '2025-03-26', 'ping', result('{"pong":1}')],
  [
    'structured content that is no object',
    '2025-06-18',
    'tools/call',
    result('{"content":[],"structuredContent":[1]}'),
  ],
  [
    'a result without its list',
    '2026-07-28',
    'tools/list',
    result('{"resultType":"complete","ttlMs":0,"cacheScope":"public"}'),
  ],
  ['a result for a method that nobody knows', '2025-06-18', 'tea/brew', result('{}')],
  [
    'a notification that no server sends',
    '2025-06-18',
    undefined,
    '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  ],
  [
    'a log message of no level',
    '2025-06-18',
    undefined,
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":1}}',
  ],
  ['a request from a server that has none', '2026-07-28', undefined, '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'],
  ['another JSON-RPC', '2025-06-18', 'ping', '{"jsonrpc":"1.0","id":1,"result":{}}'],
  ['an error without a message', '2025-06-18', undefined, error('{"code":-32600}')],
  ['an error with half a code', '2025-06-18', undefined, error('{"code":1.5,"message":"m"}')],
  [
    'a null id where the schema leaves it out',
    '2025-11-25',
    undefined,
    error('{"code":-32700,"message":"m"}', '"id":null,'),
  ],
  ['a batch', '2025-06-18', 'ping', `[${result('{}')}]`],
  ['a retired code', '2026-07-28', undefined, error('{"code":-32002,"message":"m"}')],
  ['a code that the specification reserves', '2026-07-28', undefined, error('{"code":-32050,"message":"m"}')],
] as const) {
  test(`finds ${what}`, () => {
    assert.throws(
      () => checkWire({ revision, direction: 'out', text, ...(method === undefined ? {} : { method }) }),
      /^the wire: /,
    );
  });
}

for (const [what, revision, method, text] of [
  ['a result that does not say that it is complete', '2026-07-28', 'tools/call', result('{"content":[]}')],
  ['a list without caching hints', '2026-07-28', 'tools/list', result('{"resultType":"complete","tools":[]}')],
  [
    'sound in the first revision',
    '2024-11-05',
    'tools/call',
    result('{"content":[{"type":"audio","data":"","mimeType":"a/b"}]}'),
  ],
  [
    'a link before there were any',
    '2025-03-26',
    'tools/call',
    result('{"content":[{"type":"resource_link","uri":"a:b","name":"a"}]}'),
  ],
  [
    'an unsupported version without the supported ones',
    '2026-07-28',
    undefined,
    error('{"code":-32022,"message":"m"}'),
  ],
  ['an error without any id', '2025-06-18', undefined, error('{"code":-32700,"message":"m"}', '')],
  [
    'a request of the client’s from the server',
    '2025-06-18',
    undefined,
    '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  ],
  ['a question that asks nothing', '2025-06-18', undefined, '{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}'],
  [
    'a result that asks with a method that is none',
    '2026-07-28',
    'tools/call',
    '{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"ping"}}}}',
  ],
] as const) {
  const body = (): void => {
    assert.throws(
      () => checkWire({ revision, direction: 'out', text, ...(method === undefined ? {} : { method }) }),
      /official JSON schema of/,
    );
  };
  if (haveOfficialSchemas) official(`find ${what}`, body);
}

if (!haveOfficialSchemas)
  official.skip(
    'every message on the wire fits them',
    'the folder that holds them is not beside this checkout; the official packages still judged every message',
  );

test('follows which revision was agreed, and which method an answer is for', () => {
  talk(
    '2025-11-25',
    ...OPEN,
    ASK,
    ['out', result('{}')],
    ['out', error('{"code":-32700,"message":"m"}', '"id":null,')],
  );
  talk('2025-11-25', ...OPEN, ['in', `[${ASK[1]}]`], ['out', `[${result('{}')}]`]);
  assert.throws(
    () => talk('2025-11-25', ['in', `[${ASK[1]}]`], ['out', `[${result('{}')}]`]),
    /a batch, which 2025-11-25 does not have/,
  );
  assert.throws(() => talk('2025-11-25', ...OPEN, ASK, ['out', result('{"a":1}')]), /EmptyResult/);
});

test('holds a modern request to its own revision, whatever the session', () => {
  const ask = ['in', `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",${META}}}`] as const;
  talk('2025-11-25', ...OPEN, ask, [
    'out',
    result(`{"resultType":"complete",${SERVER},"content":[],"structuredContent":[1]}`),
  ]);
  assert.throws(
    () => talk('2025-11-25', ...OPEN, ask, ['out', error('{"code":-32002,"message":"m"}')]),
    /2026-07-28 reserves or retired/,
  );
});

test('finds an answer to no request, and a second answer', () => {
  assert.throws(() => talk('2025-06-18', ['out', result('{}')]), /answers request 1, which nobody sent/);
  assert.throws(
    () => talk('2025-06-18', ASK, ['out', result('{}')], ['out', result('{}')]),
    /which nobody sent or which is answered already/,
  );
  assert.throws(
    () => talk('2025-06-18', ASK, ['out', '{"jsonrpc":"2.0","id":"1","result":{}}']),
    /answers request "1"/,
  );
});

test('an id in use is refused at once, so an error is taken for the later request', () => {
  const call = ['in', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}'] as const;
  talk('2025-06-18', call, ASK, ['out', error('{"code":-32600,"message":"m"}')], ['out', result('{"content":[]}')]);
});

test('an id is free again once its request is cancelled, though the answer may still come', () => {
  const call = ['in', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}'] as const;
  const cancel = ['in', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'] as const;
  talk('2025-06-18', call, cancel, ASK, ['out', result('{}')]);
  talk('2025-06-18', call, cancel, ['out', result('{"content":[]}')]);
});

test('finds progress that no unanswered request asked for', () => {
  const call = [
    'in',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"}}}',
  ] as const;
  const progress = [
    'out',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}',
  ] as const;
  talk('2025-06-18', call, progress, ['out', result('{"content":[]}')]);
  assert.throws(() => talk('2025-06-18', call, ['out', result('{"content":[]}')], progress), /progress for token "p"/);
  assert.throws(() => talk('2025-06-18', progress), /progress for token "p"/);
});

test('finds notifications of a subscription before its acknowledgement, without a request, or after its end', () => {
  const listen = [
    'in',
    `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},${META}}}`,
  ] as const;
  const tag = '"_meta":{"io.modelcontextprotocol/subscriptionId":1}';
  const told = (method: string, more = ''): readonly ['out', string] => [
    'out',
    `{"jsonrpc":"2.0","method":"notifications/${method}","params":{${tag}${more}}}`,
  ];
  const acknowledged = told('subscriptions/acknowledged', ',"notifications":{"toolsListChanged":true}');
  const [tools, prompts] = [told('tools/list_changed'), told('prompts/list_changed')];
  const over = ['out', result(`{"resultType":"complete",${tag}}`)] as const;
  talk('2025-11-25', ...OPEN, listen, acknowledged, tools, tools, over);
  const wrong = (words: RegExp, ...said: Parameters<typeof talk>[1][]): void =>
    assert.throws(() => talk('2026-07-28', ...said), words);
  wrong(/before it was acknowledged/, listen, tools);
  wrong(/acknowledged again/, listen, acknowledged, acknowledged);
  wrong(/which it has not asked for/, listen, acknowledged, prompts);
  wrong(/subscription 1, which is not open/, listen, acknowledged, over, tools);
  wrong(/subscription 1, which is not open/, acknowledged);
});

test('a message of the client is not judged until it is answered with a result', () => {
  talk('2025-06-18', ['in', 'no JSON'], ['out', error('{"code":-32700,"message":"m"}', '"id":null,')]);
  talk('2025-06-18', ['in', '{"jsonrpc":"2.0","id":1,"method":5}'], ['out', error('{"code":-32600,"message":"m"}')]);
  talk(
    '2025-06-18',
    ['in', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'],
    ['out', error('{"code":-32602,"message":"m"}')],
  );
});

if (haveOfficialSchemas) {
  official('find a request that was answered though it did not fit', () => {
    assert.throws(
      () =>
        talk('2025-06-18', ['in', '{"jsonrpc":"2.0","id":1,"method":"tools/call"}'], ['out', result('{"content":[]}')]),
      /asked: CallToolRequest/,
    );
  });
}
