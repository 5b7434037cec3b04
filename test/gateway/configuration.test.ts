/** The configuration of a gateway: the files of four clients, variables, and problems that turn off one server. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { gatewayOptionsIn, readConfiguration } from '../../src/gateway/configuration.ts';
import { readMountOptions } from '../../src/gateway/mounts/mount-options.ts';
import { suite } from '../harness/door.ts';

const test = suite('the configuration of a gateway');

const ENVIRONMENT = { TOKEN: 's3cret', TILDE: '~/secret', EMPTY: '', NESTED: `\${TOKEN}` };

function readText(text: string, file = '/p/mcp.json') {
  return readConfiguration(text, { file, environment: ENVIRONMENT });
}

const read = (servers: object, file?: string) => readText(JSON.stringify({ mcpServers: servers }), file);

/** The problems as lines. */
const problems = (servers: object): string[] =>
  readText(JSON.stringify({ mcpServers: servers }, undefined, 1)).problems.map(
    ({ line, field, message, off }) => `${line} ${off === undefined ? 'note' : 'off'} ${field}: ${message}`,
  );

const thrown = (text: string): string => {
  try {
    readText(text);
  } catch (error) {
    return String(error instanceof Error && error.message);
  }
  return 'nothing';
};

test('reads mcpServers of Claude Desktop, Claude Code and Cursor', () => {
  const { servers } = read({
    files: { command: 'npx', args: ['-y', 'server-filesystem', '~/notes'], env: { A: '1' } },
    remote: {
      type: 'http',
      url: 'https://mcp.example.com/mcp',
      headers: { Authorization: `Bearer \${TOKEN}` },
      timeout: 5000,
    },
    local: { socket: 'run/x.sock', troupe: { prefix: false, only: ['get_*'], pins: 'hold' } },
  });
  assert.equal(
    servers.map(({ name, target, options }) => ({ name, target, options })),
    [
      {
        name: 'files',
        target: { command: 'npx', args: ['-y', 'server-filesystem', `${homedir()}/notes`], env: { A: '1' }, cwd: '/p' },
        options: {},
      },
      {
        name: 'remote',
        target: { url: 'https://mcp.example.com/mcp', headers: { Authorization: 'Bearer s3cret' } },
        options: { timeoutMs: 5000 },
      },
      { name: 'local', target: { socket: '/p/run/x.sock' }, options: { prefix: false, only: ['get_*'], pins: 'hold' } },
    ],
  );
});

test('reads servers of VS Code with comments and trailing commas, relative to the workspace', () => {
  const { servers, problems } = readText(
    `\ufeff// Servers\n{ /* of\n this project */ "servers": { "a": {
      "type": "stdio", "command": "\${workspaceFolder}/run", "args": ["\${userHome}", "//not a comment", ],
      "env": { "N": 1, "OFF": null, },
    }, }, "inputs": [], }`,
    '/p/shop/.vscode/mcp.json',
  );
  assert.equal(problems, []);
  assert.equal(servers[0]?.target, {
    command: '/p/shop/run',
    args: [homedir(), '//not a comment'],
    env: { N: '1' },
    cwd: '/p/shop',
  });
});

test('a relative command is a path in the workspace, and a bare name is looked up', () => {
  const commands = read({ a: { command: './bin/a' }, b: { command: 'b' } }, '/q/.cursor/mcp.json').servers;
  assert.equal(
    commands.map(({ target }) => 'command' in target && target.command),
    ['/q/bin/a', 'b'],
  );
});

test('replaces variables once, and uses a default for an empty or missing variable', () => {
  const { servers } = read({
    a: {
      command: 'x',
      args: [`\${TOKEN}-\${env:TOKEN}`, `\${EMPTY}`, `\${EMPTY:-d}`, `\${GONE:-http://a/b}`, `\${NESTED}`, '$TOKEN'],
    },
  });
  const target = servers[0]?.target;
  assert.equal(target && 'args' in target && target.args, [
    's3cret-s3cret',
    '',
    'd',
    'http://a/b',
    `\${TOKEN}`,
    '$TOKEN',
  ]);
});

test('shows a command as it is written, with no value of a variable', () => {
  const { servers } = read({
    a: { command: 'npx', args: ["it's", '--token', `\${TOKEN}`, 'a b'], env: { KEY: `\${TOKEN}` } },
    b: { url: `https://x/\${TOKEN}` },
  });
  assert.equal(
    servers.map(({ shown }) => shown),
    [`npx 'it'\\''s' --token \${TOKEN} 'a b' (with KEY set)`, `https://x/\${TOKEN}`],
  );
});

test('a missing variable turns off its server only, and names the field', () => {
  const servers = {
    a: { command: 'x', env: { KEY: `\${GONE}` } },
    b: { url: 'https://x', headers: { 'X-Key': `\${input:key}` } },
    c: { command: 'x', args: ['ok', `\${env:GONE}`] },
    d: { command: 'x', args: [`\${config:y}`] },
    e: { command: 'x' },
  };
  assert.equal(
    read(servers).servers.map(({ name }) => name),
    ['e'],
  );
  assert.equal(problems(servers), [
    '6 off mcpServers.a.env.KEY: the environment variable GONE is not set',
    `12 off mcpServers.b.headers.X-Key: \${input:key}: no value. Set the environment variable key, or start the gateway over HTTP on a terminal, where it asks`,
    '19 off mcpServers.c.args.1: the environment variable GONE is not set',
    `25 off mcpServers.d.args.0: \${config:y}: expected \${NAME}, \${NAME:-default} or \${env:NAME} with the name of an environment variable`,
  ]);
});

for (const [title, entry, expected] of [
  ['no way to connect', {}, 'off mcpServers.a: expected one of command, url and socket, got none'],
  [
    'two ways',
    { command: 'x', url: 'https://x' },
    'off mcpServers.a: expected one of command, url and socket, got command and url',
  ],
  [
    'a wrong type',
    { command: 'x', type: 'http' },
    'off mcpServers.a.type: expected stdio or local for an entry with command, got string "http"',
  ],
  [
    'a member of another way',
    { url: 'https://x', env: { A: '1' } },
    'note mcpServers.a.env: an entry with url has no env. It is ignored',
  ],
  ['a URL that is none', { url: 'ftp://x' }, 'off mcpServers.a.url: expected an http or https URL, got "ftp://x"'],
  [
    'arguments that are no texts',
    { command: 'x', args: [1] },
    'off mcpServers.a.args: expected a list of strings, got array of 1',
  ],
  [
    'a timeout that is none',
    { command: 'x', timeout: 0 },
    'off mcpServers.a.timeout: expected milliseconds, at least 1, got number 0',
  ],
  [
    'an unknown member',
    { command: 'x', arg: [] },
    'note mcpServers.a.arg: unknown member, ignored (did you mean args?)',
  ],
  [
    'an unknown option',
    { command: 'x', troupe: { exept: [] } },
    'off mcpServers.a.troupe.exept: unknown option (did you mean except?). The options are',
  ],
  [
    'a wrong option',
    { command: 'x', troupe: { pins: 'on' } },
    'off mcpServers.a.troupe.pins: expected "off", "warn" or "hold", got string "on"',
  ],
] as const)
  test(`reports ${title}`, () => assert.match(problems({ a: entry }).join('\n'), expected));

test('auth takes its secrets from variables only, and belongs to entries with url', () => {
  const auth = { clientId: 'nightly', clientSecret: `\${TOKEN}`, grant: 'client_credentials', scopes: ['read'] };
  const { servers } = read({
    a: { url: 'https://x', troupe: { auth } },
    b: { url: 'https://x', troupe: { auth: false } },
  });
  assert.equal(
    servers.map(({ options }) => options.auth),
    [{ ...auth, clientSecret: 's3cret' }, false],
  );
  const wrong = (entry: object): string => problems({ a: entry }).join();
  assert.match(
    wrong({ url: 'https://x', troupe: { auth: { clientSecret: 'abc' } } }),
    `a.troupe.auth.clientSecret: expected a variable such as \${NAME}: a configuration has no secrets`,
  );
  assert.match(
    wrong({ url: 'https://x', troupe: { auth: { privateKey: `\${GONE}` } } }),
    'a.troupe.auth.privateKey: the environment variable GONE is not set',
  );
  assert.match(wrong({ command: 'x', troupe: { auth: {} } }), 'a.troupe.auth: only an entry with url has auth');
  assert.match(wrong({ url: 'https://x', troupe: { auth: { scope: [] } } }), 'unknown option (did you mean scopes?)');
});

test('members that only describe a server are accepted', () => {
  assert.equal(problems({ a: { command: 'x', description: 'd', autoApprove: [] } }), []);
});

test('names become names of mounts, each its own, whatever their order', () => {
  const entries = {
    'GitHub MCP': { command: 'x' },
    github_mcp: { command: 'y' },
    'github-mcp': { command: 'z' },
    slack_bot: { command: 'z' },
    '@org/a-very-long-name-of-a-server': { command: 'z' },
    '@org/a-very-long-name-of-another': { command: 'z' },
    '123': { command: 'w' },
    地图: { command: 'w' },
    карта: { command: 'w' },
  };
  const named = (given: object): Record<string, string> =>
    Object.fromEntries(read(given).servers.map(({ name, key }) => [key, name]));
  const names = named(entries);
  assert.equal(problems(entries), []);
  assert.is(new Set(Object.values(names)).size, Object.keys(entries).length);
  for (const name of Object.values(names)) assert.match(name, /^[a-z][a-z0-9-]{0,23}$/);
  assert.is(names['github-mcp'], 'github-mcp');
  assert.is(names.slack_bot, 'slack-bot');
  assert.match(names.github_mcp ?? '', /^github-mcp-[a-z0-9]{5}$/);
  assert.equal(named(Object.fromEntries(Object.entries(entries).reverse())), names);
});

test('one key in two lists is one server', () => {
  const { servers, problems: found } = readText(
    '{ "mcpServers": { "a": { "command": "x" } }, "servers": { "a": { "command": "y" } } }',
  );
  assert.is(servers.length, 1);
  assert.match(found[0]?.message ?? '', 'expected one server "a", got a second');
});

test('~ at the start of a path is the home directory, in each member that has paths', () => {
  const at = (path: string): string => join(homedir(), path);
  const targetOf = (entry: object) => {
    const { servers, problems } = read({ a: entry });
    return servers[0]?.target ?? problems.map(({ message }) => message).join();
  };
  const cases: readonly (readonly [entry: object, expected: object])[] = [
    [
      { command: 'x', cwd: '~/one' },
      { command: 'x', args: [], env: {}, cwd: at('one') },
    ],
    [
      { command: 'x', cwd: '~' },
      { command: 'x', args: [], env: {}, cwd: homedir() },
    ],
    [
      { command: 'x', working_directory: '~/one' },
      { command: 'x', args: [], env: {}, cwd: at('one') },
    ],
    [{ command: '~/bin/x' }, { command: at('bin/x'), args: [], env: {}, cwd: '/p' }],
    [{ socket: '~/x.sock' }, { socket: at('x.sock') }],
    [
      { command: 'x', cwd: `\${UNSET:-~/one}` },
      { command: 'x', args: [], env: {}, cwd: at('one') },
    ],
    // A shell expands only the start of a word, and not what a variable contains. Another user's directory is unknown.
    [
      { command: 'x', args: ['~', '~/a', '~ada/a', '--in=~/a', 'a~', `\${TILDE}`], env: { PATHS: '~/a' } },
      {
        command: 'x',
        args: [homedir(), at('a'), '~ada/a', '--in=~/a', 'a~', '~/secret'],
        env: { PATHS: '~/a' },
        cwd: '/p',
      },
    ],
    [
      { command: 'x', cwd: '~ada/one' },
      { command: 'x', args: [], env: {}, cwd: '/p/~ada/one' },
    ],
  ];
  for (const [entry, expected] of cases) assert.equal(targetOf(entry), expected, JSON.stringify(entry));
  const { problems, files } = read({ a: { command: 'x', envFile: '~/no-such-file.env' } });
  assert.is(problems[0]?.message, 'the file ~/no-such-file.env cannot be read: ENOENT: no such file or directory');
  assert.equal([...files], [at('no-such-file.env')]);
});

test('envFile adds variables, env has precedence, and a file that is missing turns off its server only', () => {
  const directory = mkdtempSync(join(tmpdir(), 'gateway-env-'));
  writeFileSync(join(directory, 'some.env'), '# keys\nA=1\nB="two words"\nexport C=3\n');
  const entries = {
    a: { command: 'x', envFile: `\${workspaceFolder}/some.env`, env: { A: '0' } },
    b: { command: 'x', envFile: 'none.env' },
    c: { url: 'https://example.com/mcp', envFile: 'some.env' },
    d: { command: 'x' },
  };
  const { servers, problems: found, files } = read(entries, join(directory, 'mcp.json'));
  const [a, , d] = servers;
  assert.equal(a && 'env' in a.target ? a.target.env : undefined, { A: '0', B: 'two words', C: '3' });
  // The values of a file are in no log.
  assert.is(a?.shown, 'x (with A set)');
  assert.is(d?.name, 'd');
  assert.equal(
    found.map(({ field, off }) => [field, off]),
    [
      ['mcpServers.b.envFile', 'b'],
      ['mcpServers.c.envFile', undefined],
    ],
  );
  assert.equal([...files], [join(directory, 'some.env'), join(directory, 'none.env')]);
  rmSync(directory, { recursive: true });
});

test('each bound of a mount can be set, as a whole number of at least 1', () => {
  const bounds = [
    ...['timeoutMs', 'connectMs', 'listMs', 'probeMs', 'firstListMs', 'staleMs', 'upstreamWaitMs', 'upstreamIdleMs'],
    ...['maxUpstreamConnections', 'maxUpstreamInFlight', 'maxListPages', 'maxListed', 'maxListBytes', 'maxRounds'],
    ...['maxDefinitionBytes', 'maxMessageBytes', 'maxSamplingPerCall'],
  ];
  for (const bound of bounds) {
    const [server] = read({ a: { command: 'x', troupe: { [bound]: 7 } } }).servers;
    assert.equal(server?.options, { [bound]: 7 });
    // The mount knows the option.
    assert.is(Reflect.get(readMountOptions('a', { [bound]: 7 }), bound), 7);
    for (const wrong of [0, 1.5, '7'])
      assert.match(
        problems({ a: { command: 'x', troupe: { [bound]: wrong } } })[0] ?? '',
        `off mcpServers.a.troupe.${bound}`,
      );
  }
});

test('the ways in which the tools of a server are found can be set, each once', () => {
  for (const expose of ['all', 'search', 'code', ['code'], ['search', 'code']])
    assert.equal(read({ a: { command: 'x', troupe: { expose } } }).servers[0]?.options, { expose });
  for (const expose of ['list', [], ['all'], ['code', 'code'], true])
    assert.match(
      problems({ a: { command: 'x', troupe: { expose } } })[0] ?? '',
      /off mcpServers\.a\.troupe\.expose.* expected "all", "search", "code" or \["search", "code"\], got/,
    );
});

test('a disabled server is not mounted, whatever its variables', () => {
  const { servers, disabled, problems } = read({ a: { command: `\${GONE}`, disabled: true } });
  assert.equal([servers, disabled, problems], [[], ['a'], []]);
});

test('equal entries have equal digests, by connection and by options', () => {
  const one = { command: 'x', env: { A: '1', B: '2' } };
  const [a, b, c, d] = read({
    a: one,
    b: { env: { B: '2', A: '1' }, command: 'x', args: [], troupe: {} },
    c: { ...one, env: { A: `\${TOKEN}`, B: '2' } },
    d: { ...one, timeout: 1 },
  }).servers.map(({ digests }) => digests);
  assert.equal(a, b);
  assert.not.equal(c?.target, a?.target);
  assert.equal([d?.target, d?.options === a?.options], [a?.target, false]);
});

for (const [title, text, expected] of [
  [
    'a missing comma',
    '{\n  "mcpServers": {\n    "a": {}\n    "b": {}\n  }\n}',
    '/p/mcp.json:4:5: expected a comma or }, got "',
  ],
  [
    'an end that is missing',
    '{ "mcpServers": {',
    '/p/mcp.json:1:18: expected the name of a member, in double quotes, or }, got the end of the text',
  ],
  [
    'a text without its end',
    '{ "mcpServers": "x\n',
    '/p/mcp.json:1:17: expected a text in double quotes that ends on its line',
  ],
  ['a comment without its end', '{}\n/* x', '/p/mcp.json:2:1: expected the end of this comment'],
  ['__proto__', '{ "__proto__": {} }', '/p/mcp.json:1:3: the member __proto__ is not allowed'],
  ['a word', '{ "mcpServers": undefined }', '/p/mcp.json:1:17: expected a value, got u'],
  ['a second value', '{} {}', '/p/mcp.json:1:4: expected the end of the text, got {'],
  ['deep nesting', '['.repeat(70), 'nested deeper than 64 levels'],
  ['a list', '[]', '/p/mcp.json:1: expected a JSON object, got array of 0'],
  [
    'a mistyped list of servers',
    '{ "mcpServer": {} }',
    'expected one of the members mcpServers, servers, mcp.servers, mcp, context_servers, mcp_servers, amp.mcpServers, got mcpServer (did you mean mcpServers?)',
  ],
  ['servers that are no object', '{\n"servers": 7 }', '/p/mcp.json:2: servers: expected an object, got number 7'],
] as const)
  test(`does not read ${title}`, () => assert.match(thrown(text), expected));

test('reads every escape and number of JSON', () => {
  const value = { text: 'a"\\/\b\f\n\r\t\u00e9\u{1f600}\u007f', list: [0, -1.5e-3, 1e21, true, null], '': {} };
  const { servers } = readText(
    JSON.stringify({ mcpServers: { a: { command: 'x', args: [value.text], description: value } } }),
  );
  assert.equal(servers[0] && 'args' in servers[0].target && servers[0].target.args, [value.text]);
  assert.match(thrown('{ "a": 01 }'), 'expected a comma');
  assert.match(thrown('{ "a": "\\x" }'), 'expected a text in double quotes');
});

test('a configuration without servers is accepted', () => {
  assert.equal(readText('{ "mcpServers": {} }'), {
    servers: [],
    disabled: [],
    problems: [],
    files: new Set(),
    inputs: [],
  });
});

test('approve of an entry is an option of its mount, and a wrong one turns the server off with the line of the entry', () => {
  const approve = [
    'delete_*',
    { destructive: true },
    { tools: ['*_refund'], by: { scope: 'ops' }, quorum: 2, expires: '1h' },
  ];
  assert.equal(read({ a: { command: 'x', troupe: { approve } } }).servers[0]?.options, { approve });
  assert.equal(problems({ a: { command: 'x', troupe: { approve: ['ok', { tools: ['*_refund'], quorom: 2 }] } } }), [
    '12 off mcpServers.a.troupe.approve.1.quorom: no such option; there are tools, destructive, when, expires, by, quorum, self, title, message, show, preview, remember, recheck',
  ]);
  assert.equal(problems({ a: { command: 'x', troupe: { approve: [{ destructive: false }] } } }), [
    '8 off mcpServers.a.troupe.approve.0.destructive: expected true, got boolean false',
  ]);
});

test('another condition of approve is another digest, so that an edit changes the mount', () => {
  const digestOf = (min: number) =>
    read({ a: { command: 'x', troupe: { approve: [{ tools: ['*'], when: { amount: { min } } }] } } }).servers[0]
      ?.digests;
  assert.is.not(digestOf(1)?.options, digestOf(2)?.options);
  assert.is(digestOf(1)?.target, digestOf(2)?.target);
});

test('a file has the options of scripts beside its servers, and an invalid one is reported with its line', () => {
  const text = '{ "mcpServers": {},\n "troupe": { "code": { "effects": "allow", "waitMs": 5000 } } }';
  assert.equal(gatewayOptionsIn(text, 'mcp.json'), { code: { effects: 'allow', waitMs: 5000 } });
  assert.equal(gatewayOptionsIn('{}', 'mcp.json'), {});
  for (const [own, words] of [
    [
      '{ "code": { "effects": "always" } }',
      /^mcp\.json:2: troupe: code: effects: expected "approve", "allow" or "deny"/,
    ],
    ['{ "cod": {} }', /^mcp\.json:2: troupe: cod: no such option/],
    ['1', /^mcp\.json:2: troupe: expected an object such as/],
  ] as const)
    assert.throws(() => gatewayOptionsIn(`{ "mcpServers": {},\n "troupe": ${own} }`, 'mcp.json'), words);
});
