/**
 * Who may talk to an HTTP server at all: Host, Origin, content types, and what browsers are told (S-06). The DNS rebinding of other MCP
 * servers is here: CVE-2025-66414, CVE-2025-66416, CVE-2026-34742, CVE-2026-35568, CVE-2026-35577, GHSA-89vp-x53w-74fx.
 */
import { get } from 'node:http';
import * as assert from 'uvu/assert';
import { oauth } from '../../../src/features/oauth/oauth.ts';
import { createServer, http } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { answered, call, modern, refused, send } from './modern.ts';
import { Raw, rawRequest } from './raw.ts';
import { ask, initialize, type Stage, serveHttp } from './support.ts';

const test = suite('the HTTP guard');

let stage: Stage;
let port: string;
let calls = 0;
const APP = 'https://app.example.com';
test.before(async () => {
  stage = await serveHttp({ allowedOrigins: [APP] }, (server) => {
    server.tool('act', {}, () => {
      calls += 1;
      return 'acted';
    });
  });
  port = new URL(stage.url).port;
});
test.after(() => stage.close());

const HOSTS: Readonly<Record<string, boolean>> = {
  localhost: true,
  'localhost:PORT': true,
  'LocalHost:PORT': true,
  '127.0.0.1': true,
  '127.0.0.1:PORT': true,
  '127.0.0.1:1': true,
  '[::1]': true,
  '[::1]:PORT': true,
  '': false,
  'evil.example.com': false,
  'evil.example.com:PORT': false,
  'localhost.attacker.com': false,
  '127.0.0.1.nip.io': false,
  'attacker.com#localhost': false,
  'localhost@evil.com': false,
  'localhost:80@evil.com': false,
  'localhost, evil.com': false,
  'localhost:99999': false,
  '0.0.0.0:PORT': false,
  '169.254.169.254': false,
};

const ORIGINS: Readonly<Record<string, boolean>> = {
  none: true,
  'http://localhost': true,
  'http://localhost:5173': true,
  'https://127.0.0.1:8443': true,
  'http://[::1]:3000': true,
  [APP]: true,
  null: false,
  '': false,
  'http://evil.example.com': false,
  'http://app.example.com': false,
  'https://app.example.com.evil.com': false,
  'https://app.example.com:444': false,
  'http://localhost.evil.com': false,
  'http://evil.com#localhost': false,
  'file://': false,
  'https://app.example.com, http://evil.com': false,
};

for (const [host, hostPasses] of Object.entries(HOSTS)) {
  const shown = host === '' ? 'an empty Host' : `Host: ${host}`;
  test(`S-06: ${hostPasses ? 'lets in' : 'keeps out'} ${shown}, with whatever Origin`, async () => {
    for (const [origin, originPasses] of Object.entries(ORIGINS)) {
      calls = 0;
      const headers = { host: host.replace('PORT', port), ...(origin === 'none' ? {} : { origin }) };
      const passes = hostPasses && originPasses;
      const answer = await call(stage.url, 'act', {}, { headers, agent: false });
      if (passes) await answered(answer);
      else {
        assert.ok(answer.status === 403 || (answer.status === 400 && !hostPasses), `${origin}: ${answer.status}`);
        const { error } = await refused(answer, answer.status, undefined);
        assert.match(error?.message ?? '', hostPasses ? 'allowedOrigins' : /Host/, origin);
      }
      assert.is(calls, passes ? 1 : 0, origin);
    }
  });
}

test('S-06: judges every method alike, and opens nothing for a stranger', async () => {
  for (const headers of [{ host: 'evil.example.com' }, { origin: 'http://evil.example.com' }]) {
    for (const method of ['GET', 'DELETE', 'OPTIONS', 'PUT'])
      assert.is((await ask(stage.url, { method, headers, agent: false })).status, 403, method);
    await refused(await ask(stage.url, { headers, body: initialize('2025-11-25') }), 403, undefined);
  }
  assert.is(stage.sessions(), 0);
});

test('S-38: judges every path alike, those of health and those that are not there too', async () => {
  for (const headers of [{ host: 'evil.example.com' }, { origin: 'http://evil.example.com' }])
    for (const path of ['/healthz', '/readyz', '/sse', '/nowhere']) {
      const answer = await ask(new URL(path, stage.url).href, { method: 'GET', headers, agent: false });
      assert.is(answer.status, 403, path);
      assert.not.match(await answer.text(), '/mcp');
    }
});

test('S-39: takes HTTP/1.1 and HTTP/1.0, and refuses a request line without a version or with another', async () => {
  for (const path of ['/mcp', '/healthz', '/sse', '/nowhere'])
    for (const [version, expected] of [
      ['', 400],
      [' HTTP/0.9', 400],
      [' HTTP/2.0', 505],
    ] as const)
      for (const method of ['GET', 'POST']) {
        const connection = await Raw.open(stage.url);
        connection.write(`${method} ${path}${version}\r\nHost: localhost\r\n\r\n`);
        assert.is((await connection.response()).status, expected, `${method} ${path}${version}`);
        await connection.closed();
      }
  const connection = await Raw.open(stage.url);
  connection.write('GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n');
  assert.is((await connection.response()).status, 200);
});

test('S-39: refuses a charset other than UTF-8 with 415, and says so', async () => {
  for (const charset of ['utf-16', 'ISO-8859-1', '"us-ascii"', 'utf-8; charset=utf-7']) {
    calls = 0;
    const type = `application/json; charset=${charset}`;
    const { error } = await refused(
      await call(stage.url, 'act', {}, { headers: { 'content-type': type } }),
      415,
      undefined,
    );
    assert.match(error?.message ?? '', /charset=utf-8/);
    assert.is(calls, 0);
  }
});

const LOCAL = ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream'];
const SAID = ['MCP-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', 'Mcp-Name: act'];
const ACT = JSON.stringify(modern('tools/call', { params: { name: 'act' } }).body);

async function raw(target: string, headers: readonly string[]): Promise<number> {
  const connection = await Raw.open(stage.url);
  connection.write(rawRequest('POST', target, [...headers, ...SAID], ACT));
  const { status } = await connection.response();
  connection.cut();
  return status;
}

test('keeps out a request without a Host, with two of them, or with another in its target', async () => {
  calls = 0;
  const [, ...rest] = LOCAL;
  assert.is(await raw('/mcp', rest), 400);
  for (const hosts of [
    ['localhost', 'evil.com'],
    ['evil.com', 'localhost'],
    ['localhost', 'localhost'],
  ])
    assert.is(await raw('/mcp', [...hosts.map((host) => `Host: ${host}`), ...rest]), 400, String(hosts));
  // RFC 9112 section 3.2.2: the target's authority counts, not the header's.
  const status = await raw('http://evil.com/mcp', LOCAL);
  assert.ok(status >= 400 && status < 500, String(status));
  assert.is(calls, 0);
  assert.is(await raw('/mcp', LOCAL), 200);
});

test('sees a Host and an Origin behind any number of other headers', async () => {
  calls = 0;
  const flood = Array.from({ length: 150 }, (_, index) => `X-Flood-${index}: x`);
  const last = [...LOCAL.slice(1), ...SAID];
  for (const [host, origin] of [
    ['evil.com', 'http://localhost'],
    ['localhost', 'http://evil.com'],
  ]) {
    const connection = await Raw.open(stage.url);
    connection.write(rawRequest('POST', '/mcp', [...last, ...flood, `Host: ${host}`, `Origin: ${origin}`], ACT));
    const { status } = await connection.response();
    assert.ok(status >= 400 && status < 500, `${host}, ${origin}: ${status}`);
    connection.cut();
  }
  assert.is(calls, 0);
});

test('takes JSON that calls itself JSON', async () => {
  for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])
    await answered(await call(stage.url, 'act', {}, { headers: { 'content-type': type } }));
});

const FOREIGN = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  undefined,
  '',
  'text/plain; application/json',
  'application/jsonp',
  'application/json-seq',
  'application/vnd.api+json',
  'application/json, text/plain',
  'application/json application/json',
];
for (const type of FOREIGN) {
  test(`CVE-2026-33252: refuses ${type === undefined ? 'no content type' : `content type "${type}"`}, which a page of another site may send, with 415`, async () => {
    calls = 0;
    await refused(await call(stage.url, 'act', {}, { headers: { 'content-type': type } }), 415, undefined);
    assert.is(calls, 0);
  });
}

test('S-09: refuses bodies that are compressed with 415, and says so', async () => {
  for (const encoding of ['gzip', 'br', 'deflate', 'gzip, gzip', 'x-unheard-of']) {
    const answer = await call(stage.url, 'act', {}, { headers: { 'content-encoding': encoding } });
    assert.match((await refused(answer, 415, undefined)).error?.message ?? '', /Content-Encoding/i);
  }
});

test('tells a browser of an allowed origin what it may send, and what of the answer it may read', async () => {
  const asking = { 'access-control-request-method': 'POST' };
  const names =
    'content-type, mcp-method, mcp-name, mcp-param-region, mcp-protocol-version, mcp-session-id, authorization';
  const preflight = await ask(stage.url, {
    method: 'OPTIONS',
    headers: { origin: APP, ...asking, 'access-control-request-headers': `${names}, x-other` },
  });
  assert.ok([200, 204].includes(preflight.status), String(preflight.status));
  assert.is(preflight.headers['access-control-allow-origin'], APP);
  assert.match(preflight.headers.vary ?? '', /\bOrigin\b/i);
  for (const method of ['GET', 'POST', 'DELETE'])
    assert.match(preflight.headers['access-control-allow-methods'] ?? '', method);
  const allowed = String(preflight.headers['access-control-allow-headers'])
    .toLowerCase()
    .split(/\s*,\s*/);
  for (const name of names.split(', ')) assert.ok(allowed.includes(name), name);
  for (const name of ['*', 'x-other']) assert.not.ok(allowed.includes(name), name);
  const answer = await send(stage.url, 'tools/list', { headers: { origin: APP } });
  const refusal = await send(stage.url, 'tools/list', { headers: { origin: APP, 'content-type': 'text/plain' } });
  for (const { headers } of [preflight, answer, refusal]) {
    assert.is(headers['access-control-allow-origin'], APP);
    assert.is(headers['access-control-allow-credentials'], undefined);
  }
  assert.match(String(answer.headers['access-control-expose-headers']), /Mcp-Session-Id/i);
  await answered(answer);
});

test('tells a page of this machine that is not on the list nothing: its browser keeps the answer from it', async () => {
  for (const method of ['OPTIONS', 'POST']) {
    const headers = { origin: 'http://localhost:5173', 'access-control-request-method': 'POST' };
    const answer = await ask(stage.url, {
      ...modern('tools/list'),
      method,
      headers: { ...modern('tools/list').headers, ...headers },
    });
    assert.equal(
      Object.keys(answer.headers).filter((name) => name.startsWith('access-control-allow')),
      [],
    );
    await answer.text();
  }
});

test('goes by the names that it is given, and by those of this machine', async () => {
  const named = await serveHttp({ allowedHosts: ['mcp.example.com', 'other.example.com:8443'] });
  const verdicts: readonly (readonly [string, number])[] = [
    ['mcp.example.com', 200],
    ['mcp.example.com:1234', 200],
    ['MCP.EXAMPLE.COM', 200],
    ['other.example.com:8443', 200],
    ['localhost', 200],
    ['other.example.com', 403],
    ['sub.mcp.example.com', 403],
    ['mcp.example.com.evil.com', 403],
  ];
  for (const [host, status] of verdicts) {
    const answer = await send(named.url, 'tools/list', { headers: { host }, agent: false });
    assert.is(answer.status, status, host);
    await answer.text();
  }
  await named.close();
});

for (const [what, options, address] of [
  ['loopback', {}, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/],
  [
    'a name',
    { host: '0.0.0.0', allowedHosts: ['mcp.example.com', 'b.example'] },
    /^http:\/\/mcp\.example\.com:\d+\/mcp$/,
  ],
  [
    'a name with a port',
    { host: '::', allowedHosts: ['mcp.example.com:8443'] },
    /^http:\/\/mcp\.example\.com:8443\/mcp$/,
  ],
  [
    'a proxy, whose name it allows',
    { allowedHosts: ['localhost', 'mcp.example.com'], path: '/tools/mcp' },
    /^https:\/\/mcp\.example\.com\/tools\/mcp$/,
  ],
  [
    'a proxy, whose address is that of the resource',
    {
      allowedHosts: ['other.example', 'mcp.example.com'],
      auth: oauth({ issuer: 'https://login.example.com', resource: 'https://mcp.example.com/seeds' }),
    },
    /^https:\/\/mcp\.example\.com\/seeds$/,
  ],
] as const)
  test(`the address for clients of ${what} passes the check of its own server`, async () => {
    const server = createServer({ name: 'named', version: '1.0.0' });
    const transport = http({ port: 0, ...options });
    await server.listen(transport);
    assert.match(transport.clientUrl, address);
    const { host } = new URL(transport.clientUrl);
    const { port } = new URL(transport.url);
    const status = await new Promise((resolve, reject) => {
      const request = get({ host: '127.0.0.1', port, path: '/mcp', headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      request.on('error', reject);
    });
    // 403 is the answer to another name.
    assert.is.not(status, 403);
    await server.close();
  });
