/** Entries as other programs write them mean here what they mean there. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'troupe';
import { connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { KNOWN_MEMBERS } from '../../src/gateway/client-members.ts';
import { type ConfiguredServer, readConfiguration } from '../../src/gateway/configuration.ts';
import { Gateway } from '../../src/gateway/configured-gateway.ts';
import { suite } from '../harness/door.ts';

const test = suite('members of other programs');

const environment = { TOKEN: 's3cret', KEY: 'k3y' };
const read = (root: object) => readConfiguration(JSON.stringify(root), { file: '/p/mcp.json', environment });
const entryOf = (entry: object): ConfiguredServer => {
  const { servers, problems } = read({ mcpServers: { a: entry } });
  const [server] = servers;
  if (!server) throw new Error(JSON.stringify(problems));
  return server;
};

/** The variable as it is written. */
const VARIABLE = `\${TOKEN}`;
const url = 'https://example.com/mcp';
const command = { command: 'npx', args: ['-y', 'x'], env: {}, cwd: '/p' };

for (const [what, entry, target] of [
  ['Windsurf: serverUrl', { serverUrl: url, headers: { A: 'b' } }, { url, headers: { A: 'b' } }],
  ['Gemini CLI: httpUrl', { httpUrl: url }, { url, headers: {} }],
  ['Gemini CLI: httpUrl beside an empty url', { httpUrl: url, type: 'http' }, { url, headers: {} }],
  ['Goose: uri', { uri: url, type: 'streamable_http' }, { url, headers: {} }],
  ['Goose: cmd and envs', { cmd: 'npx', args: ['-y', 'x'], envs: { A: '1' } }, { ...command, env: { A: '1' } }],
  [
    'opencode: a list',
    { type: 'local', command: ['npx', '-y', 'x'], environment: { A: '{env:KEY}' } },
    { ...command, env: { A: 'k3y' } },
  ],
  [
    'opencode: remote',
    { type: 'remote', url, headers: { A: 'Bearer {env:TOKEN}' } },
    { url, headers: { A: 'Bearer s3cret' } },
  ],
  ['Zed: an object', { source: 'custom', command: { path: 'npx', args: ['-y', 'x'], env: null } }, command],
  ['Codex: http_headers', { url, http_headers: { A: 'b' } }, { url, headers: { A: 'b' } }],
  [
    'Codex: bearer_token_env_var',
    { url, bearer_token_env_var: 'TOKEN' },
    { url, headers: { Authorization: 'Bearer s3cret' } },
  ],
  ['Codex: env_http_headers', { url, env_http_headers: { 'X-Key': 'KEY' } }, { url, headers: { 'X-Key': 'k3y' } }],
  ['Cline: transportType', { transportType: 'stdio', command: 'npx', args: ['-y', 'x'] }, command],
  ['Roo Code: streamable-http', { type: 'streamable-http', url }, { url, headers: {} }],
  [
    'Codex: env_vars',
    { ...command, env_vars: ['KEY', { name: 'GONE' }] },
    { ...command, env: { KEY: 'k3y', GONE: '' } },
  ],
  ['mcporter: baseUrl', { baseUrl: url, bearerTokenEnv: 'KEY' }, { url, headers: { Authorization: 'Bearer k3y' } }],
  ['mcporter: bearerToken', { server_url: url, bearerToken: 't' }, { url, headers: { Authorization: 'Bearer t' } }],
  ['mcporter: executable', { executable: 'npx', args: ['-y', 'x'] }, command],
  [
    'Warp: working_directory',
    { command: 'npx', args: ['-y', 'x'], working_directory: 'w' },
    { ...command, cwd: '/p/w' },
  ],
  ['Warp: no working_directory', { command: 'npx', args: ['-y', 'x'], env: {}, working_directory: null }, command],
  ['GitHub Copilot: requestInit', { url, requestInit: { headers: { A: 'b' } } }, { url, headers: { A: 'b' } }],
  ['AnythingLLM: streamable', { type: 'streamable', url }, { url, headers: {} }],
  ['a type in capitals', { type: 'Streamable_HTTP', url }, { url, headers: {} }],
  ['null and an empty text', { command: '', url, cwd: '', env: null, headers: null, type: null }, { url, headers: {} }],
  ['an empty url', { command: 'npx', args: ['-y', 'x'], url: '' }, command],
  [
    'Gemini CLI: $NAME in headers',
    { httpUrl: url, headers: { A: 'Bearer $TOKEN', B: '$KEY', C: '$env:KEY' } },
    { url, headers: { A: 'Bearer s3cret', B: 'k3y', C: 'k3y' } },
  ],
  [
    'Crush: $NAME in env, in no other member, and as a whole word',
    { ...command, args: ['$TOKEN'], env: { A: '$TOKEN', B: 'a$TOKEN', C: '$TOKEN/x', D: '$token' } },
    { ...command, args: ['$TOKEN'], env: { A: 's3cret', B: 'a$TOKEN', C: '$TOKEN/x', D: '$token' } },
  ],
  [
    'Claude Code and Gemini CLI: the directory of the file',
    { command: `\${CLAUDE_PLUGIN_ROOT}/x`, args: [`\${extensionPath}\${/}y`, `\${CLAUDE_PROJECT_DIR:-.}`] },
    { command: '/p/x', args: ['/p/y', '/p'], env: {}, cwd: '/p' },
  ],
  ['a unix: address', { url: 'unix:///run/mcp.sock' }, { socket: '/run/mcp.sock' }],
  ['a unix: path', { url: 'unix:./mcp.sock' }, { socket: '/p/mcp.sock' }],
] as const)
  test(`${what}: the target`, () => assert.equal(entryOf(entry).target, target));

for (const [what, entry, options] of [
  ['Kiro and Roo Code: disabledTools', { disabledTools: ['a'] }, { except: ['a'] }],
  [
    'Gemini CLI: excludeTools, includeTools',
    { excludeTools: ['a'], includeTools: ['b'] },
    { except: ['a'], only: ['b'] },
  ],
  [
    'Codex: disabled_tools, enabled_tools',
    { disabled_tools: ['a'], enabled_tools: ['b'] },
    { except: ['a'], only: ['b'] },
  ],
  ['GitHub Copilot: tools', { tools: ['*'] }, {}],
  ['GitHub Copilot: some tools', { tools: ['a'] }, { only: ['a'] }],
  [
    'a prohibition is added to that of troupe',
    { disabledTools: ['a'], troupe: { except: ['b'] } },
    { except: ['a', 'b'] },
  ],
  ['AnythingLLM: suppressedTools', { anythingllm: { autoStart: true, suppressedTools: ['a'] } }, { except: ['a'] }],
  [
    'Codex: required, and what tools ask',
    { required: true, tools: { a: { approval_mode: 'auto' } } },
    { required: true },
  ],
  ['Cline: seconds', { timeout: 60 }, { timeoutMs: 60_000 }],
  ['Roo Code: an hour', { timeout: 3_600, alwaysAllow: [] }, { timeoutMs: 3_600_000 }],
  ['Gemini CLI: milliseconds', { timeout: 30_000, trust: true }, { timeoutMs: 30_000 }],
  ['Claude Code: milliseconds', { timeout: 3_600 }, { timeoutMs: 3_600 }],
  ['Codex: seconds', { tool_timeout_sec: 90, startup_timeout_sec: 20 }, { timeoutMs: 90_000, connectMs: 20_000 }],
  ['opencode: two times', { timeout: { startup: 5_000, request: 9_000 } }, { timeoutMs: 9_000, connectMs: 5_000 }],
  ['troupe has precedence', { timeout: 60, troupe: { timeoutMs: 7 } }, { timeoutMs: 7 }],
] as const)
  test(`${what}: the options`, () => assert.equal(entryOf({ command: 'x', ...entry }).options, options));

for (const off of [{ disabled: true }, { enabled: false }, { isActive: false }])
  test(`an entry with ${JSON.stringify(off)} is off`, () => {
    const { servers, disabled } = read({ mcpServers: { a: { command: 'x', ...off } } });
    assert.equal([servers, disabled], [[], ['a']]);
  });

for (const [what, root] of [
  ['VS Code: settings.json', { mcp: { inputs: [], servers: { a: { command: 'x' } } } }],
  ['opencode', { $schema: 'https://opencode.ai/config.json', mcp: { a: { type: 'local', command: ['x'] } } }],
  ['opencode 2', { mcp: { servers: { a: { type: 'local', command: ['x'] } } } }],
  ['Zed', { context_servers: { a: { source: 'custom', command: 'x' } } }],
  ['Codex, as JSON', { mcp_servers: { a: { command: 'x' } } }],
  ['Amp', { 'amp.mcpServers': { a: { command: 'x' } } }],
  ['Gemini CLI, with settings of its own', { mcp: { allowed: ['a'] }, mcpServers: { a: { command: 'x' } } }],
  ['Continue: a list', { mcpServers: [{ name: 'a', command: 'x' }] }],
  ['a list with ids', { mcpServers: [{ id: 'a', command: 'x' }] }],
  ['Warp and plugins of Claude Code: the servers alone', { a: { command: 'x' } }],
  ['the servers alone, with a schema', { $schema: 'https://x', a: { serverUrl: 'https://x' } }],
] as const)
  test(`${what}: the servers are found`, () =>
    assert.equal(
      read(root).servers.map(({ name }) => name),
      ['a'],
    ));

for (const [what, root] of [
  ['settings with a command', { model: 'm', statusLine: { command: 'x' } }],
  ['settings with hooks', { hooks: { Stop: [] }, statusLine: { command: 'x' } }],
  ['a file with comments only', { $schema: 'https://x' }],
] as const)
  test(`${what}: no server is found`, () => assert.throws(() => read(root), 'expected one of the members'));

for (const directory of ['.vscode', '.cursor', '.claude', '.roo', '.gemini', '.kiro/settings', '.junie/mcp'])
  test(`a path in ${directory} of a project is relative to the project`, () => {
    const text = JSON.stringify({ mcpServers: { a: { command: './x' } } });
    const target = (file: string): unknown => readConfiguration(text, { file, environment }).servers[0]?.target;
    assert.equal(target(`/p/${directory}/mcp.json`), { command: '/p/x', args: [], env: {}, cwd: '/p' });
    assert.equal(target(`/p/x${directory}/mcp.json`), {
      command: `/p/x${directory}/x`,
      args: [],
      env: {},
      cwd: `/p/x${directory}`,
    });
  });

for (const [what, entry, note] of [
  ['headersHelper', { url, headersHelper: './token' }, 'the program is not run'],
  ['sandboxEnabled', { command: 'x', sandboxEnabled: true }, 'without it'],
  ['sandbox', { command: 'x', sandbox: {} }, 'without it'],
  ['a $NAME that is not set', { command: 'x', env: { A: '$PASSW0RD' } }, 'It stays as it is'],
] as const)
  test(`${what}: the server is mounted, and a line says what has no effect`, () => {
    const { servers, problems } = read({ mcpServers: { a: entry } });
    assert.is(servers.length, 1);
    assert.equal(
      problems.map(({ message, off }) => [message.includes(note), off]),
      [[true, undefined]],
    );
    // The word may be a password.
    assert.not.match(problems[0]?.message ?? '', 'PASSW0RD');
  });

for (const entry of [
  { command: 'x', sandboxEnabled: false, alwaysLoad: true, start_on_launch: true, lifecycle: 'keep-alive' },
  { url, oauth: true, oauth_client_id: 'c', oauth_callback_port: 1, tokenCacheDir: '~/x', id: 'a', remote: true },
])
  test(`no line is written about ${Object.keys(entry).join(', ')}`, () =>
    assert.equal(read({ mcpServers: { a: entry } }).problems, []));

test('S-87 no line of the log, error or fact shows the value of a variable in the arguments, the address or the envFile of an entry', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-secrets-'));
  const file = join(directory, 'mcp.json');
  const noisy = 'console.log("noise"); console.error("more"); setTimeout(() => process.exit(1), 50)';
  writeFileSync(
    file,
    JSON.stringify({
      mcpServers: {
        program: { command: process.execPath, args: ['-e', noisy, VARIABLE] },
        missing: { command: '/no/such/program', args: [VARIABLE] },
        variables: { command: '/no/such/program', envFile: `${VARIABLE}.env` },
        address: { url: `http://127.0.0.1:9/${VARIABLE}/mcp` },
      },
    }),
  );
  const log: string[] = [];
  const host = createServer({ name: 'host', version: '1', log: (_, message) => void log.push(message) });
  const facts: string[] = [];
  const gateway = new Gateway({ file, server: host, environment, say: (_, line) => void log.push(line) });
  const client = await connect(host);
  const stop = client.inspect((record) => void facts.push(JSON.stringify(record)));
  await gateway.open();
  await gateway.settled();
  const text = [...log, ...facts].join('\n');
  assert.match(text, 'noise');
  assert.match(text, VARIABLE);
  assert.not.match(text, 's3cret');
  stop();
  await client.close();
  gateway.close();
  await host.close();
  rmSync(directory, { recursive: true });
});

test('docs/gateway.md has the table of members', () => {
  const page = readFileSync(new URL('../../docs/gateway.md', import.meta.url), 'utf8');
  const rows = page.match(/^\| `.* \| .* \(\[docs\]\(https:.*\)\) \| .* \|$/gm) ?? [];
  const documented = rows.flatMap((row) =>
    [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  // The members of Troupe have sections of their own.
  assert.equal([...documented, 'socket', 'troupe'].sort(), [...KNOWN_MEMBERS].sort());
});
