/** `troupe gateway CONFIG`: offers the MCP servers of a configuration as one server; compares and approves their definitions. */
import { readFileSync, statSync } from 'node:fs';
import type { ConnectedClient } from '../../client/connected-client.ts';
import { fileTokens } from '../../client/oauth/file-tokens.ts';
import { isLoopback } from '../../core/http/host-guard.ts';
import { packageVersion } from '../../core/kernel/package-files.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { stdio } from '../../core/transports/stdio.ts';
import { reserveStdout } from '../../core/transports/stdout-guard.ts';
import { createServer } from '../../features/server/server.ts';
import {
  ConfigurationError,
  type ConfiguredServer,
  type GatewayConfiguration,
  gatewayOptionsIn,
  readConfiguration,
} from '../../gateway/configuration.ts';
import { Gateway } from '../../gateway/configured-gateway.ts';
import type { PinnableDefinitions } from '../../gateway/mounts/pins.ts';
import { type CallTarget, COMMAND_PATIENCE } from '../call/call-target.ts';
import { catalogueDirectory, tokenFile } from '../call/state-directory.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { commandLog, LOG_HELP, LOG_OPTION } from '../command-log.ts';
import { type CommandLine, chooseLog, readOptions } from '../command-options.ts';
import { ENDPOINTS, ENDPOINTS_HELP, Endpoints } from '../serving/endpoints.ts';
import { readHttpAddress } from '../serving/http-address.ts';
import { INSPECTING, INSPECTING_HELP, readInspecting } from '../serving/inspecting-options.ts';
import { watchLoop } from '../serving/loop-watch.ts';
import { chosenStore } from '../serving/served-store.ts';
import { drainOnSignal } from '../serving/stop-signals.ts';
import { STORE_HELP, STORE_OPTIONS } from '../serving/store-option.ts';
import { inCommand, print, say, UsageError } from '../usage.ts';

const OPTIONS = {
  ...ENDPOINTS,
  name: 'NAME',
  diff: '',
  approve: 'NAME',
  ...STORE_OPTIONS,
  ...LOG_OPTION,
  ...INSPECTING,
};

const HELP = `Usage: troupe gateway CONFIG [--http [HOST:]PORT] [--socket PATH] [--data DIR]
       troupe gateway CONFIG --diff
       troupe gateway CONFIG --approve NAME [TOOL]

Offers the MCP servers of CONFIG as one server, to clients of every revision: on
stdin and stdout, or to many clients over HTTP or a socket. CONFIG is a file of
Claude Desktop, Claude Code or Cursor (mcpServers) or of VS Code (servers). It is
watched: changes apply while calls run.

${ENDPOINTS_HELP}
  --name NAME            name of the server, as clients see it (troupe-gateway)
  --diff                 connect to the servers, compare their definitions
                         with the lock file, print the differences, and exit
  --approve NAME [TOOL]  write the definitions of a server of CONFIG, or of one of
                         its tools or prompts, to the lock file, and exit
${STORE_HELP}
${LOG_HELP}
${INSPECTING_HELP}

The lock file lies beside CONFIG: mcp.json has mcp.lock.json. It contains the
tools and prompts that you approved. "troupe": { "pins": "hold" } in an entry of
CONFIG hides what is not approved; "warn", the default, reports it; "off" does
not look.

Without --http and --socket, the gateway ends with its client. SIGTERM and SIGINT
finish the running requests and exit with code 0.

Exit codes: 0 success, and no difference; 1 a failure, or a difference (--diff);
2 wrong arguments.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('gateway', args, OPTIONS);
  if (!line) return print(io, HELP);
  chooseLog('gateway', line);
  const { values, positionals } = line;
  const [given, tool, ...more] = [...positionals, ...line.rest];
  const file = configurationFile(given, io);
  if (values.diff !== undefined || values.approve !== undefined) {
    if (values.diff !== undefined && (values.approve !== undefined || tool !== undefined))
      throw new UsageError('troupe gateway: expected --diff, or --approve NAME [TOOL], got both');
    if (more.length > 0) throw new UsageError(`troupe gateway: expected one TOOL, got ${[tool, ...more].join(' ')}`);
    return judge(file, values, tool, io);
  }
  if (tool !== undefined) throw new UsageError(`troupe gateway: expected one CONFIG, got ${positionals.join(' ')}`);
  await serve(line, file, io);
  return undefined;
}

/** @throws {UsageError} */
function configurationFile(given: string | undefined, io: CommandIo): string {
  if (given === undefined)
    throw new UsageError('troupe gateway: expected CONFIG, a file with mcpServers or servers, got none');
  const path = absolutePath(io, given);
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile())
    throw new UsageError(
      `troupe gateway: expected CONFIG, a file, got ${given}: ${found ? 'a directory' : 'no such file'}`,
    );
  return path;
}

/** Compares all servers with the lock file, or approves one. @throws {UsageError} */
async function judge(
  file: string,
  { approve, data }: CommandLine['values'],
  element: string | undefined,
  io: CommandIo,
): Promise<number> {
  const { approveServer, compareServer, linesOfChange } = await import('../../gateway/approval.ts');
  const { EXIT, Interrupt, withClient } = await import('../call/command-client.ts');
  const environment = await withInputs(file, io);
  const { servers, problems } = readConfiguration(readFileSync(file, 'utf8'), { file, environment });
  const chosen = servers.filter(({ name, key }) => approve === undefined || name === approve || key === approve);
  if (approve !== undefined && chosen.length === 0)
    throw new UsageError(
      `troupe gateway: --approve: expected the name of a server of ${file}, got ${approve}${suggestion(
        approve,
        servers.map(({ name }) => name),
      )}`,
    );
  const interrupt = new Interrupt('gateway', io);
  let code: number = 0;
  for (const { line, field, message, off } of approve === undefined ? problems : []) {
    say(`troupe gateway: ${file}:${line}: ${field}: ${message}`, 'error');
    if (off !== undefined) code = EXIT.failed;
  }
  for (const server of chosen) {
    const { name } = server;
    const show = (text: string): void => void print(io, `${name}: ${text}\n`);
    const judged = async (definitions: PinnableDefinitions): Promise<number> => {
      const compared = await compareServer(file, server, definitions);
      if (approve !== undefined) {
        const approved = await approveServer(file, server, compared, element);
        show(approved.length === 0 ? 'nothing to approve' : 'approved');
        for (const change of approved) show(change);
        return 0;
      }
      for (const change of compared.changes) show(linesOfChange(change).join('\n'));
      return compared.changes.length === 0 ? 0 : EXIT.failed;
    };
    const { target } = server;
    if ('openapi' in target) {
      const { documentDefinitions } = await import('../../gateway/openapi/document-definitions.ts');
      code ||= await documentDefinitions(target.openapi, target.api, server.options).then(judged, (error: unknown) => {
        say(`troupe gateway: ${name}: ${visibleLine(messageOf(error))}`, 'error');
        return EXIT.noConnection;
      });
      continue;
    }
    const work = async (client: ConnectedClient): Promise<number> => {
      const fresh = { fresh: true };
      const [tools, prompts, events] = await Promise.all([
        client.tools(fresh),
        client.prompts(fresh),
        // Event types that cannot be listed are not offered.
        client.eventTypes(fresh).catch(() => []),
      ]);
      return judged({ tools, prompts, events });
    };
    const callTarget = callTargetOf(target, server.shown);
    const reached = await withClient(
      { io, command: 'gateway', target: callTarget, data, open: true, interactive: false, connect: {} },
      interrupt,
      work,
    );
    code ||= reached;
  }
  return code;
}

async function serve(line: CommandLine, file: string, io: CommandIo): Promise<void> {
  const { values } = line;
  const endpoints = new Endpoints('gateway', line);
  const store = await chosenStore('gateway', values, io);
  if (endpoints.none) reserveStdout();
  const log = commandLog();
  const server = createServer({
    name: values.name ?? 'troupe-gateway',
    version: packageVersion(),
    // Clients read capabilities only when they connect, and the configuration may change later.
    offers: ['tools', 'resources', 'prompts', 'completions'],
    ...(store && { store }),
    ...(log && { log }),
    ...gatewayOptionsIn(readFileSync(file, 'utf8'), file),
  });
  // Without another endpoint, stdin is the client.
  const environment = endpoints.none ? io.env : await withInputs(file, io);
  const gateway = new Gateway({
    file,
    server,
    environment,
    tokens: fileTokens(tokenFile(values.data, io)),
    catalogues: catalogueDirectory(io),
    say: (level, text) => say(`troupe gateway: ${text}`, level === 'error' ? 'error' : 'info'),
  });
  await gateway.open();
  const transports = [...endpoints.transports(server, []), ...(endpoints.none ? [stdio()] : [])];
  const inspecting = readInspecting('gateway', line);
  if (inspecting.inspect || inspecting.record !== undefined) {
    const { inspect } = await import('../serving/inspecting.ts');
    await inspect(server, {
      ...inspecting,
      command: 'gateway',
      target: file,
      connect: () => endpoints.connectHelp(server),
    });
  }
  warnOfStrangers(values);
  await server.listen(...transports);
  watchLoop(server, { input: endpoints.none });
  if (!endpoints.none) drainOnSignal(io, server, () => gateway.close());
  endpoints.announce(server);
}

/** The environment, with what a person answers for the inputs that it lacks. Without a terminal, nothing is asked. */
async function withInputs(file: string, io: CommandIo): Promise<CommandIo['env']> {
  if (io.stdin.isTTY !== true || io.stderr.isTTY !== true) return io.env;
  let inputs: GatewayConfiguration['inputs'];
  try {
    ({ inputs } = readConfiguration(readFileSync(file, 'utf8'), { file, environment: io.env }));
  } catch (error) {
    // The gateway reports it.
    if (error instanceof ConfigurationError) return io.env;
    throw error;
  }
  if (inputs.length === 0) return io.env;
  const { askInputs } = await import('../serving/asked-inputs.ts');
  return { ...io.env, ...(await askInputs(inputs, io)) };
}

/** A configuration cannot say who may call. */
function warnOfStrangers(values: CommandLine['values']): void {
  const address = inCommand('gateway', () => readHttpAddress(values));
  if (!address || isLoopback(address.host)) return;
  say(
    `troupe gateway: everyone who reaches ${address.host} can call these servers with the credentials of this gateway. Put a proxy that authenticates in front of it, or mount the servers in a program with createServer({ http: { auth } })`,
  );
}

/** The target of a command that connects once. */
function callTargetOf(
  target: Exclude<ConfiguredServer['target'], { readonly openapi: string }>,
  shown: string,
): CallTarget {
  const url = 'url' in target ? new URL(target.url) : undefined;
  return {
    target: 'socket' in target ? target : { ...target, name: shown },
    name: shown,
    url,
    patience: 'command' in target ? COMMAND_PATIENCE : {},
    words: [],
  };
}
