/** The headers of a modern request say what its body says, or it is refused (S-07): 2026-07-28 streamable-http "Server Validation". */
import * as assert from 'uvu/assert';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { ErrorCode } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { answered, call, encoded, type Modern, modern, refused, send, sentinel } from './modern.ts';
import { ask, type Headers, type Stage, serveHttp } from './support.ts';

const test = suite('mirrored headers');

const ODD = 'notes://世界';
const CALLED: string[] = [];

let stage: Stage;
let url: string;
test.before(async () => {
  stage = await serveHttp({}, (server) => {
    server.resource(ODD, {}, () => 'odd');
    server.prompt('hello', {}, () => 'hello');
    const input = {
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        count: { type: 'integer', 'x-mcp-header': 'Count' },
        dry: { type: 'boolean', 'x-mcp-header': 'Dry-Run' },
        at: { type: 'object', properties: { zone: { type: 'string', 'x-mcp-header': 'Zone' } } },
        query: { type: 'string' },
      },
    };
    server.tool('sql', { input }, (args) => {
      CALLED.push(JSON.stringify(args));
      return 'ran';
    });
  });
  url = stage.url;
});
test.after(() => stage.close());

const OK = 'accepts';
const BAD = 'refuses';

type Standard = readonly [verdict: string, what: string, method: string, Modern];

const echo = { name: 'echo', arguments: { text: 'x' } };
const STANDARD: readonly Standard[] = [
  [BAD, 'no MCP-Protocol-Version', 'tools/list', { headers: { 'mcp-protocol-version': undefined } }],
  [BAD, 'a revision that the body does not name', 'tools/list', { headers: { 'mcp-protocol-version': '2025-11-25' } }],
  [BAD, 'an unknown revision in the header alone', 'tools/list', { headers: { 'mcp-protocol-version': 'v9' } }],
  [BAD, 'an empty revision', 'tools/list', { headers: { 'mcp-protocol-version': '' } }],
  [BAD, 'the revision twice', 'tools/list', { headers: { 'mcp-protocol-version': [LATEST_MODERN, LATEST_MODERN] } }],
  [BAD, 'two revisions', 'tools/list', { headers: { 'mcp-protocol-version': [LATEST_MODERN, '2025-11-25'] } }],
  [BAD, 'no Mcp-Method', 'tools/list', { headers: { 'mcp-method': undefined } }],
  [BAD, 'another Mcp-Method', 'tools/list', { headers: { 'mcp-method': 'prompts/list' } }],
  [BAD, 'an empty Mcp-Method', 'tools/list', { headers: { 'mcp-method': '' } }],
  [BAD, 'an Mcp-Method in capitals', 'tools/list', { headers: { 'mcp-method': 'TOOLS/LIST' } }],
  [
    BAD,
    'an Mcp-Method in Base64, which is not for it',
    'tools/list',
    { headers: { 'mcp-method': sentinel('tools/list') } },
  ],
  [BAD, 'Mcp-Method twice', 'tools/list', { headers: { 'mcp-method': ['tools/list', 'tools/list'] } }],
  [BAD, 'no Mcp-Name of a tool', 'tools/call', { params: echo, headers: { 'mcp-name': undefined } }],
  [BAD, 'the Mcp-Name of another tool', 'tools/call', { params: echo, headers: { 'mcp-name': 'held' } }],
  [BAD, 'an Mcp-Name in capitals', 'tools/call', { params: echo, headers: { 'mcp-name': 'ECHO' } }],
  [BAD, 'an empty Mcp-Name', 'tools/call', { params: echo, headers: { 'mcp-name': '' } }],
  [BAD, 'Mcp-Name twice', 'tools/call', { params: echo, headers: { 'mcp-name': ['echo', 'echo'] } }],
  [BAD, 'a second Mcp-Name', 'tools/call', { params: echo, headers: { 'mcp-name': ['echo', 'held'] } }],
  [BAD, 'an Mcp-Name with bad Base64', 'tools/call', { params: echo, headers: { 'mcp-name': '=?base64?ZWNobw?=' } }],
  [BAD, 'the Mcp-Name of another in Base64', 'tools/call', { params: echo, headers: { 'mcp-name': sentinel('held') } }],
  [
    BAD,
    'no Mcp-Name of a resource',
    'resources/read',
    { params: { uri: 'notes://a' }, headers: { 'mcp-name': undefined } },
  ],
  [
    BAD,
    'the Mcp-Name of another resource',
    'resources/read',
    { params: { uri: 'notes://a' }, headers: { 'mcp-name': 'notes://b' } },
  ],
  [BAD, 'no Mcp-Name of a prompt', 'prompts/get', { params: { name: 'hello' }, headers: { 'mcp-name': undefined } }],
  [
    BAD,
    'two of Mcp-Name that only together are the name',
    'tools/call',
    { params: { name: 'echo, held' }, headers: { 'mcp-name': ['echo', 'held'] } },
  ],
  [OK, 'white space around a value', 'tools/call', { params: echo, headers: { 'mcp-name': ' \t echo \t ' } }],
  [OK, 'an Mcp-Name in Base64', 'tools/call', { params: echo, headers: { 'mcp-name': sentinel('echo') } }],
  [OK, 'a name that only Base64 can say', 'resources/read', { params: { uri: ODD } }],
  [OK, 'a prompt by its name', 'prompts/get', { params: { name: 'hello' } }],
  [OK, 'no Mcp-Name where nothing is named', 'tools/list', {}],
];

for (const [verdict, what, method, options] of STANDARD) {
  test(`${verdict} ${what}`, async () => {
    const answer = await send(url, method, { ...options, id: 'h' });
    if (verdict === OK) await answered(answer, 'h');
    else await refused(answer, 400, ErrorCode.HeaderMismatch, 'h');
  });
}

test('reads header names in any case', async () => {
  const request = modern('tools/call', { params: { name: 'sql', arguments: { region: 'eu' } } });
  const lower = { ...request.headers, 'mcp-param-region': 'eu' };
  for (const spell of [String, (name: string) => name.toUpperCase(), (name: string) => name.replace('m', 'M')]) {
    const headers = Object.fromEntries(Object.entries(lower).map(([name, value]) => [spell(name), value]));
    await answered(await ask(url, { ...request, headers }));
  }
});

test('says which header it was, what it expected and what came', async () => {
  const answer = await call(url, 'echo', { text: 'x' }, { headers: { 'mcp-name': 'held' } });
  const { error } = await refused(answer, 400, ErrorCode.HeaderMismatch, 1);
  for (const word of ['Mcp-Name', 'echo', 'held']) assert.match(error?.message ?? '', word);
});

type Parameter = readonly [verdict: string, what: string, args: object, headers: Headers];

const region = (verdict: string, what: string, value: unknown, header: string | string[] | undefined): Parameter => [
  verdict,
  what,
  { region: value },
  header === undefined ? {} : { 'mcp-param-region': header },
];
const number = (verdict: string, value: number, header: string): Parameter => [
  verdict,
  `"${header}" for the number ${value}`,
  { count: value },
  { 'mcp-param-count': header },
];
const flag = (verdict: string, value: boolean, header: string): Parameter => [
  verdict,
  `"${header}" for ${value}`,
  { dry: value },
  { 'mcp-param-dry-run': header },
];

const PARAMETERS: readonly Parameter[] = [
  region(OK, 'the same text', 'us-west1', 'us-west1'),
  region(BAD, 'another text', 'us-west1', 'us-west2'),
  region(BAD, 'another case', 'us-west1', 'US-WEST1'),
  region(BAD, 'no header of a value', 'us-west1', undefined),
  region(BAD, 'the value twice', 'eu', ['eu', 'eu']),
  region(BAD, 'two values that only together are the argument', 'eu, us', ['eu', 'us']),
  region(OK, 'a value with a comma in it', 'eu, us', 'eu, us'),
  region(OK, 'a tab within', 'a\tb', 'a\tb'),
  region(OK, 'white space around the value, which is none of it', 'eu', '  eu '),
  region(BAD, 'white space of the value that was not encoded', ' eu ', ' eu '),
  region(OK, 'white space of the value in Base64', ' padded ', '=?base64?IHBhZGRlZCA=?='),
  region(OK, 'more than ASCII in Base64', 'Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='),
  region(OK, 'line ends in Base64', 'line1\nline2', '=?base64?bGluZTEKbGluZTI=?='),
  region(OK, 'an emoji in Base64', '💡', sentinel('💡')),
  region(OK, 'plain text in Base64, though it need not be', 'Hello', '=?base64?SGVsbG8=?='),
  region(
    OK,
    'a value that looks like the sentinel, in Base64',
    '=?base64?literal?=',
    '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=',
  ),
  region(BAD, 'a value that looks like the sentinel, as it is', '=?base64?SGVsbG8=?=', '=?base64?SGVsbG8=?='),
  region(BAD, 'another text in Base64', 'Hello', sentinel('hello')),
  region(BAD, 'Base64 without its padding', 'Hello', '=?base64?SGVsbG8?='),
  region(BAD, 'Base64 with other characters', 'Hello', '=?base64?SGVs!!!bG8=?='),
  region(BAD, 'Base64 of the other alphabet', 'a?>?', '=?base64?YT8-Pw==?='),
  region(BAD, 'Base64 of no UTF-8', '\ufffd', sentinel(Buffer.from([0xff]))),
  region(BAD, 'more than ASCII as it is', 'é', 'é'),
  region(BAD, 'UTF-8 as it is', 'é', Buffer.from('é').toString('latin1')),
  region(OK, 'no prefix: Base64 is a text as any other', 'SGVsbG8=', 'SGVsbG8='),
  region(OK, 'no suffix: a text as any other', '=?base64?SGVsbG8=', '=?base64?SGVsbG8='),
  region(OK, 'a sentinel in capitals: a text as any other', '=?BASE64?SGVsbG8=?=', '=?BASE64?SGVsbG8=?='),
  region(OK, 'an empty value', '', ''),
  region(BAD, 'an empty value for a text', 'eu', ''),
  number(OK, 42, '42'),
  number(OK, -7, '-7'),
  number(OK, 0, '0'),
  number(OK, 42, '42.0'),
  number(OK, Number.MAX_SAFE_INTEGER, '9007199254740991'),
  number(OK, 42, sentinel('42')),
  number(BAD, 42, '43'),
  number(BAD, 42, '-42'),
  number(BAD, 42, '42.5'),
  number(BAD, 42, ''),
  number(BAD, 0, ''),
  number(BAD, 42, '42abc'),
  number(BAD, 42, '0x2a'),
  number(BAD, 42, '"42"'),
  number(BAD, Number.MAX_SAFE_INTEGER, '9007199254740992'),
  flag(OK, true, 'true'),
  flag(OK, false, 'false'),
  flag(BAD, true, 'false'),
  flag(BAD, true, 'True'),
  flag(BAD, true, '1'),
  [OK, 'a nested value', { at: { zone: 'b' } }, { 'mcp-param-zone': 'b' }],
  [BAD, 'another nested value', { at: { zone: 'b' } }, { 'mcp-param-zone': 'c' }],
  [BAD, 'no header of a nested value', { at: { zone: 'b' } }, {}],
  [OK, 'no header where the object around is absent', { query: 'q' }, {}],
  [BAD, 'a header for an argument that did not come', { query: 'q' }, { 'mcp-param-region': 'eu' }],
  [OK, 'a header that no parameter asks for', { query: 'q' }, { 'mcp-param-other': 'x', 'mcp-param-query': 'z' }],
  [OK, 'every one at once', { region: 'é', count: 1, dry: true, at: { zone: 'z' } }, every('é', '1', 'true', 'z')],
  [BAD, 'one wrong among all', { region: 'é', count: 1, dry: true, at: { zone: 'z' } }, every('é', '2', 'true', 'z')],
];

function every(region: string, count: string, dry: string, zone: string): Headers {
  return {
    'mcp-param-region': encoded(region),
    'mcp-param-count': count,
    'mcp-param-dry-run': dry,
    'mcp-param-zone': zone,
  };
}

for (const [verdict, what, args, headers] of PARAMETERS) {
  test(`of parameters: ${verdict} ${what}`, async () => {
    CALLED.length = 0;
    const answer = await call(url, 'sql', args, { headers, id: 'p' });
    if (verdict === OK) assert.equal((await answered(answer, 'p')).content, [{ type: 'text', text: 'ran' }]);
    else await refused(answer, 400, ErrorCode.HeaderMismatch, 'p');
    assert.equal(CALLED, verdict === OK ? [JSON.stringify(args)] : []);
  });
}

test('of parameters: expects no header for null, whatever the schema says of null', async () => {
  for (const args of [{ region: null }, { at: null }, { at: { zone: null } }]) {
    const result = await answered(await call(url, 'sql', args));
    // The schema wants strings: that is for the model to read, and no matter of headers.
    assert.is(result.isError, true);
  }
});
