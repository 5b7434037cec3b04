/**
 * Forms of configurations: what the program that a person knows does with each, and what the gateway does. The shapes come from public
 * repositories and documentation of the programs. `SOURCES` has where each program documents what it does.
 */
import { homedir } from 'node:os';
import * as assert from 'uvu/assert';
import { type ConfiguredServer, readConfiguration } from '../../src/gateway/configuration.ts';
import { suite } from '../harness/door.ts';

const test = suite('forms of configurations');

const environment = { TOKEN: 's3cret', API_KEY: 'k3y', dashed: 'exact', 'an-id': 'of its id' };
const variable = (inside: string): string => `\${${inside}}`;
const npx = { command: 'npx', args: ['-y', 'x'] };
const url = 'https://example.com/mcp';

/** A server in short: its command or address, what it gets, and what is left of its tools. */
function inShort({ name, target, options }: ConfiguredServer): string {
  const to =
    'command' in target
      ? [target.command, ...target.args, ...Object.entries(target.env).map(([key, value]) => `${key}=${value}`)]
      : 'url' in target
        ? [target.url, ...Object.entries(target.headers).map(([key, value]) => `${key}: ${value}`)]
        : ['socket' in target ? `socket ${target.socket}` : `openapi ${target.openapi}`];
  const { only, except } = options;
  const tools = [...(only ? [`only ${only.join()}`] : []), ...(except ? [`without ${except.join()}`] : [])];
  return [`${name}:`, ...to, ...tools].join(' ');
}

interface Form {
  readonly form: string;
  /** What its program does, as it documents it. */
  readonly home: string;
  readonly file: object | string;
  /** The path of the file. Default: /p/mcp.json. */
  readonly at?: string;
  /** The servers that the gateway mounts. */
  readonly mounted: readonly string[];
  /** The lines of its log, without the end of each. */
  readonly lines?: readonly string[];
}

/** Where each program of the table documents its configuration: the part of a form in front of its colon. */
const SOURCES: Readonly<Record<string, string>> = {
  'Claude Desktop': 'https://modelcontextprotocol.io/docs/develop/connect-local-servers',
  // Measured, too: an unset variable stays as text (https://microsoft.github.io/apm/reference/mcp-variable-compatibility/).
  'Claude Code': 'https://code.claude.com/docs/en/mcp',
  'Claude Code plugin': 'https://code.claude.com/docs/en/mcp',
  Cursor: 'https://cursor.com/docs/context/mcp',
  // A repeated name: ECMA-262, JSON.parse. The others: the programs of the members, which docs/gateway.md names.
  several: 'https://code.visualstudio.com/docs/copilot/reference/mcp-configuration',
  'VS Code': 'https://code.visualstudio.com/docs/copilot/reference/mcp-configuration',
  opencode: 'https://opencode.ai/docs/mcp-servers/',
  Zed: 'https://zed.dev/docs/ai/mcp',
  'Gemini CLI': 'https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md',
  'GitHub Copilot':
    'https://docs.github.com/en/copilot/how-tos/use-copilot-agents/coding-agent/extend-coding-agent-with-mcp',
  'GitHub Copilot in JetBrains':
    'https://github.com/github/github-mcp-server/blob/main/docs/installation-guides/install-other-copilot-ides.md',
  'Codex, as JSON': 'https://developers.openai.com/codex/mcp',
  Windsurf: 'https://docs.windsurf.com/windsurf/cascade/mcp',
  Cline: 'https://docs.cline.bot/mcp/configuring-mcp-servers',
  'Roo Code': 'https://docs.roocode.com/features/mcp/using-mcp-in-roo',
  Kiro: 'https://kiro.dev/docs/mcp/configuration/',
  'Goose, as JSON': 'https://block.github.io/goose/docs/getting-started/using-extensions',
  Amp: 'https://ampcode.com/manual',
  Continue: 'https://docs.continue.dev/customize/deep-dives/mcp',
  'Cherry Studio': 'https://docs.cherry-ai.com',
  Warp: 'https://docs.warp.dev/knowledge-and-collaboration/mcp',
  Troupe: 'docs/gateway.md',
};

const FORMS: readonly Form[] = [
  {
    form: 'Claude Desktop: a command',
    home: 'starts it',
    file: { mcpServers: { a: { ...npx, env: { KEY: 'v' } } }, preferences: { sidebarMode: 'task' } },
    mounted: ['a: npx -y x KEY=v'],
  },
  {
    form: 'Claude Desktop: an absolute path, and a name with dots and capitals',
    home: 'starts it',
    file: { mcpServers: { 'github.com/Acme/x-mcp': { command: '/usr/bin/x', args: [] } } },
    mounted: ['github-com-acme-x-mcp: /usr/bin/x'],
  },
  {
    form: 'Claude Code: type http with headers of variables',
    home: 'connects; an unset variable stays as text, with a warning',
    file: { mcpServers: { a: { type: 'http', url, headers: { Authorization: `Bearer ${variable('TOKEN')}` } } } },
    mounted: [`a: ${url} Authorization: Bearer s3cret`],
  },
  {
    form: 'Claude Code: type sse, and a default of a variable',
    home: 'connects',
    file: { mcpServers: { a: { type: 'sse', url: `${variable('BASE:-https://example.com')}/sse` } } },
    mounted: ['a: https://example.com/sse'],
  },
  {
    form: 'Claude Code plugin: the directory of the plugin',
    home: 'replaces it',
    file: { a: { command: 'uv', args: ['--project', variable('CLAUDE_PLUGIN_ROOT')] } },
    at: '/plugin/.mcp.json',
    mounted: ['a: uv --project /plugin'],
  },
  {
    form: 'Claude Code: a server in disabledMcpjsonServers',
    home: 'leaves it out',
    file: { mcpServers: { a: npx, b: npx }, disabledMcpjsonServers: ['b'] },
    mounted: ['a: npx -y x'],
    lines: ['mcpServers.b: disabledMcpjsonServers of the file switches it off'],
  },
  {
    form: 'Claude Code: denied tools, and a denied server',
    home: 'calls none of them',
    file: {
      mcpServers: { a: npx, b: npx },
      permissions: { deny: ['mcp__a__delete', 'mcp__a__drop_*', 'mcp__b', 'Bash(rm)'] },
    },
    mounted: ['a: npx -y x without delete,drop_*'],
    lines: ['mcpServers.b: tools of the file switches it off'],
  },
  {
    form: 'Claude Code: headersHelper',
    home: 'runs the program for headers',
    file: { mcpServers: { a: { type: 'http', url, headersHelper: './token.sh' } } },
    mounted: [`a: ${url}`],
    lines: ['mcpServers.a.headersHelper: the program is not run.'],
  },
  {
    form: 'Cursor: url without a type',
    home: 'connects',
    file: { mcpServers: { a: { url, headers: { 'X-Key': variable('env:API_KEY') } } } },
    at: '/p/.cursor/mcp.json',
    mounted: [`a: ${url} X-Key: k3y`],
  },
  {
    form: 'Cursor: a relative program, and the directory of the project',
    home: 'starts it in the project',
    file: { mcpServers: { a: { command: './bin/a', args: [variable('workspaceFolder')] } } },
    at: '/p/.cursor/mcp.json',
    mounted: ['a: /p/bin/a /p'],
  },
  {
    form: 'Cursor: url with env',
    home: 'ignores env',
    file: { mcpServers: { a: { url, env: { KEY: 'v' } } } },
    mounted: [`a: ${url}`],
    lines: ['mcpServers.a.env: an entry with url has no env. It is ignored'],
  },
  {
    form: 'several: url with an empty env and args',
    home: 'ignores them',
    file: { mcpServers: { a: { url, env: {}, args: [] } } },
    mounted: [`a: ${url}`],
  },
  {
    form: 'several: a command with headers',
    home: 'ignores headers',
    file: { mcpServers: { a: { ...npx, headers: { A: 'b' } } } },
    mounted: ['a: npx -y x'],
    lines: ['mcpServers.a.headers: an entry with command has no headers. It is ignored'],
  },
  {
    form: 'several: a command with its arguments in one text',
    home: 'some split it, others find no such program',
    file: {
      mcpServers: { a: { command: `npx -y "@acme/x y" --key=${variable('API_KEY')}`, args: ['--more'], env: {} } },
    },
    mounted: ['a: npx -y @acme/x y --key=k3y --more'],
    lines: ['mcpServers.a.command: a program with its arguments in one text is read as a shell reads it.'],
  },
  {
    form: 'several: a path with spaces that is no file here',
    home: 'starts the program of this path',
    file: { mcpServers: { a: { command: '/opt/My Apps/x' } } },
    mounted: ['a: /opt/My Apps/x'],
  },
  {
    form: 'several: a server twice in one object',
    home: 'the last one counts (JSON.parse)',
    file: '{ "mcpServers": { "a": { "command": "old" },\n "a": { "command": "new" } } }',
    mounted: ['a: new'],
    lines: ['2: mcpServers.a: occurs twice. The last one counts'],
  },
  {
    form: 'several: a member twice in an entry',
    home: 'the last one counts (JSON.parse)',
    file: '{ "mcpServers": { "a": { "command": "x", "env": { "K": "1", "K": "2" } } } }',
    mounted: ['a: x K=2'],
    lines: ['mcpServers.a.env.K: occurs twice. The last one counts'],
  },
  {
    form: 'several: ~ in paths',
    home: 'the home directory (VS Code), or as it is (Claude Desktop)',
    file: { mcpServers: { a: { command: '~/bin/x', args: ['~/notes', 'a~b'] } } },
    mounted: [`a: ${homedir()}/bin/x ${homedir()}/notes a~b`],
  },
  {
    form: 'several: an address in transport',
    home: 'connects',
    file: { mcpServers: { a: { transport: { type: 'http', url, headers: { A: 'b' } } } } },
    mounted: [`a: ${url} A: b`],
  },
  {
    form: 'several: command and url, and a type that decides',
    home: 'the type decides',
    file: { mcpServers: { a: { type: 'http', url, ...npx } } },
    mounted: [`a: ${url}`],
    lines: ['mcpServers.a.command: the type of the entry is http', 'mcpServers.a.args: an entry with url has no args'],
  },
  {
    form: 'several: command and url without a type',
    home: 'one of the two, by program',
    file: { mcpServers: { a: { url, ...npx }, b: npx } },
    mounted: ['b: npx -y x'],
    lines: ['mcpServers.a: expected one of command, url and socket, got command and url'],
  },
  {
    form: 'VS Code: comments, trailing commas, dev',
    home: 'starts it',
    file: '{ // Servers\n "servers": { "a": { "type": "stdio", "command": "node", "args": ["a.js",], "dev": {}, }, }, }',
    at: '/p/.vscode/mcp.json',
    mounted: ['a: node a.js'],
  },
  {
    form: 'VS Code: inputs with variables of their ids',
    home: 'asks the person',
    file: {
      inputs: [
        { id: 'dashed', type: 'promptString' },
        { id: 'api-key', type: 'promptString', password: true },
      ],
      servers: {
        a: {
          type: 'http',
          url: `https://${variable('input:dashed')}.example.com/mcp`,
          headers: { A: `Bearer ${variable('input:api-key')}`, B: variable('input:an-id') },
        },
      },
    },
    mounted: ['a: https://exact.example.com/mcp A: Bearer k3y B: of its id'],
  },
  {
    form: 'VS Code: an input without a variable, with a default',
    home: 'asks, and proposes the default',
    file: {
      inputs: [{ id: 'region', type: 'pickString', options: ['eu', { label: 'US', value: 'us' }], default: 'eu' }],
      servers: { a: { ...npx, env: { R: variable('input:region') } } },
    },
    mounted: ['a: npx -y x R=eu'],
  },
  {
    form: 'VS Code: an input without a variable and a default',
    home: 'asks the person',
    file: { servers: { a: { ...npx, env: { K: variable('input:gh-token') } }, b: npx } },
    mounted: ['b: npx -y x'],
    lines: [
      `servers.a.env.K: ${variable('input:gh-token')}: no value. Set the environment variable GH_TOKEN, or start the gateway`,
    ],
  },
  {
    form: 'VS Code: settings.json with mcp.servers and mcp.inputs by their ids',
    home: 'asks the person',
    file: {
      mcp: {
        inputs: { token: { type: 'promptString', default: 'none' } },
        servers: { a: { ...npx, env: { T: variable('input:token') } } },
      },
    },
    mounted: ['a: npx -y x T=none'],
  },
  {
    form: 'VS Code: a sandbox',
    home: 'restricts the program',
    file: { servers: { a: { ...npx, sandboxEnabled: true, sandbox: { filesystem: { allowWrite: ['.'] } } } } },
    mounted: ['a: npx -y x'],
    lines: ['servers.a.sandboxEnabled: only VS Code has this sandbox. The program runs without it'],
  },
  {
    form: 'VS Code: a sandbox that is off',
    home: 'starts it',
    file: { servers: { a: { ...npx, sandboxEnabled: false } } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'VS Code: numbers and null in env',
    home: 'a text, and no variable',
    file: { servers: { a: { ...npx, env: { PORT: 8080, OFF: null } } } },
    mounted: ['a: npx -y x PORT=8080'],
  },
  {
    form: 'opencode: local and remote',
    home: 'starts and connects',
    file: {
      $schema: 'https://opencode.ai/config.json',
      mcp: {
        a: { type: 'local', command: ['bun', 'x', 'm'], environment: { T: '{env:TOKEN}' }, enabled: true },
        b: { type: 'remote', url, headers: { A: 'b' } },
        c: { type: 'local', command: ['c'], enabled: false },
      },
    },
    mounted: ['a: bun x m T=s3cret', `b: ${url} A: b`],
  },
  {
    form: 'opencode: tools that are off',
    home: 'offers them to no agent that does not switch them on',
    file: {
      mcp: { 'my.mcp': { type: 'remote', url }, b: { type: 'remote', url }, c: { type: 'remote', url } },
      tools: { my_mcp_delete: false, 'my_mcp_get_*': false, 'b*': false, c: false, write: false, c_x: true },
    },
    mounted: [`my-mcp: ${url} without delete,get_*`],
    lines: ['mcp.b: tools of the file switches it off', 'mcp.c: tools of the file switches it off'],
  },
  {
    form: 'Zed: a custom server',
    home: 'starts it',
    file: { context_servers: { a: { source: 'custom', command: 'npx', args: ['-y', 'x'], env: {} } } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'Zed: a command with a path',
    home: 'starts it',
    file: { context_servers: { a: { command: { path: 'npx', args: ['-y', 'x'], env: null } } } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'Zed: a server of an extension',
    home: 'starts the program of the extension',
    file: { context_servers: { a: { settings: { key: 'v' } }, b: npx } },
    mounted: ['b: npx -y x'],
    lines: ['context_servers.a: expected one of command, url and socket, got none'],
  },
  {
    form: 'Gemini CLI: httpUrl, and $NAME',
    home: 'connects',
    file: { mcpServers: { a: { httpUrl: url, headers: { A: '$TOKEN' } } }, ui: { theme: 'GitHub' } },
    mounted: [`a: ${url} A: s3cret`],
  },
  {
    form: 'Gemini CLI: includeTools and excludeTools',
    home: 'excludeTools has precedence',
    file: { mcpServers: { a: { ...npx, includeTools: ['a', 'b'], excludeTools: ['b'] } } },
    mounted: ['a: npx -y x only a,b without b'],
  },
  {
    form: 'Gemini CLI: mcp.excluded and mcp.allowed',
    home: 'leaves the servers out',
    file: { mcpServers: { a: npx, b: npx, c: npx }, mcp: { allowed: ['a', 'b'], excluded: ['b'] } },
    mounted: ['a: npx -y x'],
    lines: ['mcpServers.b: mcp.excluded of the file', 'mcpServers.c: mcp.allowed of the file'],
  },
  {
    form: 'Gemini CLI: allowMCPServers',
    home: 'leaves the others out',
    file: { mcpServers: { a: npx, b: npx }, allowMCPServers: ['a'] },
    mounted: ['a: npx -y x'],
    lines: ['mcpServers.b: allowMCPServers of the file'],
  },
  {
    form: 'Gemini CLI: trust and timeout',
    home: 'calls without asking; milliseconds',
    file: { mcpServers: { a: { ...npx, trust: true, timeout: 30000 } } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'GitHub Copilot: type local and tools',
    home: 'offers these tools',
    file: { mcpServers: { a: { type: 'local', ...npx, tools: ['get'] }, b: { type: 'local', ...npx, tools: ['*'] } } },
    at: '/home/ada/.copilot/mcp-config.json',
    mounted: ['a: npx -y x only get', 'b: npx -y x'],
  },
  {
    form: 'GitHub Copilot in JetBrains: requestInit',
    home: 'sends the headers',
    file: { servers: { a: { url, requestInit: { headers: { A: 'b' } } } } },
    mounted: [`a: ${url} A: b`],
  },
  {
    form: 'Codex, as JSON: headers of variables, and tools',
    home: 'connects',
    file: { mcp_servers: { a: { url, bearer_token_env_var: 'TOKEN', enabled_tools: ['a'], disabled_tools: ['b'] } } },
    mounted: [`a: ${url} Authorization: Bearer s3cret only a without b`],
  },
  {
    form: 'Codex, as JSON: settings of each tool',
    home: 'asks before a call',
    file: { mcp_servers: { a: { ...npx, tools: { get: { approval_mode: 'approve' }, drop: { enabled: false } } } } },
    mounted: ['a: npx -y x without drop'],
  },
  {
    form: 'Windsurf: serverUrl and disabledTools',
    home: 'connects, without the tools',
    file: { mcpServers: { a: { serverUrl: url, disabledTools: ['x'] } } },
    mounted: [`a: ${url} without x`],
  },
  {
    form: 'Cline: alwaysAllow, disabled and a timeout in seconds',
    home: 'a call may take a minute',
    file: {
      mcpServers: { a: { ...npx, alwaysAllow: ['x'], disabled: false, timeout: 60 }, b: { ...npx, disabled: true } },
    },
    mounted: ['a: npx -y x'],
    lines: ['mcpServers.a.timeout: 60 is read as seconds'],
  },
  {
    form: 'Roo Code: streamable-http',
    home: 'connects',
    file: { mcpServers: { a: { type: 'streamable-http', url } } },
    at: '/p/.roo/mcp.json',
    mounted: [`a: ${url}`],
  },
  {
    form: 'Kiro: autoApprove and disabledTools',
    home: 'starts it, without the tools',
    file: { mcpServers: { a: { ...npx, autoApprove: [], disabledTools: ['x'], disabled: false } } },
    at: '/p/.kiro/settings/mcp.json',
    mounted: ['a: npx -y x without x'],
  },
  {
    form: 'Goose, as JSON: cmd, envs and available_tools',
    home: 'starts it with these tools; all, if the list is empty',
    file: {
      mcpServers: {
        a: { cmd: 'npx', args: ['-y', 'x'], envs: { A: '1' }, available_tools: ['get'] },
        b: { uri: url, type: 'streamable_http', available_tools: [] },
      },
    },
    mounted: ['a: npx -y x A=1 only get', `b: ${url}`],
  },
  {
    form: 'Amp: amp.mcpServers and tools that are off',
    home: 'offers them to no model',
    file: { 'amp.mcpServers': { a: npx }, 'amp.tools.disable': ['drop_*', 'builtin:edit_file'] },
    mounted: ['a: npx -y x without drop_*'],
  },
  {
    form: 'Continue: a list with names',
    home: 'starts them',
    file: {
      mcpServers: [
        { name: 'One', ...npx },
        { name: 'Two', url },
      ],
    },
    mounted: ['one: npx -y x', `two: ${url}`],
  },
  {
    form: 'Cherry Studio: isActive',
    home: 'leaves it out',
    file: { mcpServers: { a: { ...npx, isActive: true }, b: { ...npx, isActive: false } } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'Warp: the servers alone, working_directory',
    home: 'starts it',
    file: { a: { ...npx, working_directory: null, start_on_launch: true } },
    mounted: ['a: npx -y x'],
  },
  {
    form: 'Troupe: what troupe offers of what the program has switched on',
    home: '–',
    file: {
      mcpServers: {
        a: { ...npx, includeTools: ['a', 'b'], troupe: { only: ['b*', 'c'], except: ['d'] } },
        b: { ...npx, excludeTools: ['x'], troupe: { except: ['y'] } },
      },
    },
    mounted: ['a: npx -y x only b without d', 'b: npx -y x without x,y'],
  },
];

for (const { form, home, file, at = '/p/mcp.json', mounted, lines = [] } of FORMS)
  test(`${form} (at home: ${home})`, () => {
    const text = typeof file === 'string' ? file : JSON.stringify(file);
    const { servers, problems } = readConfiguration(text, { file: at, environment });
    assert.equal(servers.map(inShort), mounted);
    const said = problems.map(({ line, field, message }) => `${line}: ${field}: ${message}`);
    assert.is(said.length, lines.length, said.join('\n'));
    for (const [index, line] of lines.entries())
      assert.ok(said[index]?.includes(line), `${said[index]}\nhas no ${line}`);
  });

test('each program of the forms has a source for what it does, and each source a form', () => {
  const programs = FORMS.map(({ form }) => form.slice(0, form.indexOf(':')));
  assert.equal([...new Set(programs)].sort(), Object.keys(SOURCES).sort());
});

test('the inputs that no variable has are named, to be asked for', () => {
  const file = {
    inputs: [{ id: 'key', type: 'promptString', description: 'The key', password: true }],
    servers: {
      a: { ...npx, env: { A: variable('input:key'), B: variable('input:other'), C: variable('input:api-key') } },
      off: { ...npx, disabled: true, env: { A: variable('input:unused') } },
    },
  };
  const { inputs } = readConfiguration(JSON.stringify(file), { file: '/p/mcp.json', environment });
  assert.equal(inputs, [
    { id: 'key', description: 'The key', password: true, fallback: undefined, options: [] },
    { id: 'other', description: undefined, password: true, fallback: undefined, options: [] },
  ]);
});
