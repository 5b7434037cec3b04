/** Every command that the tutorial does not use, in the project of the tutorial. Each step is a block for the shell, and its output. */
import type { CommandStep } from './steps.ts';

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'first-hour', version: '1.0.0' } },
});
const OPENED = '…"serverInfo":{"name":"tables","version":"1.0.0"}…';
const END = 'kill $!\nwait';

const step = (text: string, output = ''): CommandStep => ({ kind: 'command', text: `${text}\n`, output });

export const COMMANDS: readonly CommandStep[] = [
  step('npx troupe --help', '…Usage: troupe <command>…'),
  step(`node_modules/.bin/troupe run server.ts <<EOF\n${INITIALIZE}\nEOF`, OPENED),
  step('node_modules/.bin/troupe dev server.ts --http 3000 &', '…troupe dev: loaded in …1 machine'),
  step('echo >> server.ts', '…troupe dev: changed: server.ts…troupe dev: loaded in …1 machine'),
  step('npx troupe login http://127.0.0.1:3000/mcp --no-open', '…can be used without signing in…'),
  step('npx troupe logout http://127.0.0.1:3000/mcp', '…Not signed in to http://127.0.0.1:3000/mcp.'),
  step('npx troupe approvals', 'Nothing waits for people.'),
  step('npx troupe inspect http://127.0.0.1:3000/mcp --json', '…"name": "find_tables"…'),
  step(END),
  step(
    'node_modules/.bin/troupe serve server.ts --socket desk.sock --record run.json &',
    '…on the socket desk.sock; connect clients with: troupe attach desk.sock',
  ),
  step(`node_modules/.bin/troupe attach desk.sock <<EOF\n${INITIALIZE}\nEOF`, OPENED),
  step('npx troupe call desk.sock find_tables guests=4 --json', '…"garden"…'),
  step(END),
  step('node_modules/.bin/troupe open run.json --no-open &', '…run.json at http://127.0.0.1:…'),
  step(END),
  // The server that it starts ends five seconds after this client has left.
  step(`node_modules/.bin/troupe attach --spawn server.ts --idle-exit 5000 <<EOF\n${INITIALIZE}\nEOF`, OPENED),
  step('npx troupe install server.ts --client cursor --yes && cat ~/.cursor/mcp.json', '…added "tables"…"run"…'),
  step(
    `node_modules/.bin/troupe gateway ~/.cursor/mcp.json <<EOF\n${INITIALIZE}\nEOF`,
    '…"serverInfo":{"name":"troupe-gateway"…',
  ),
  step('npx troupe uninstall server.ts --yes && cat ~/.cursor/mcp.json', '…removed "tables"…"mcpServers": {…}…'),
  step('npx troupe types server.ts', '…interface …'),
  step('npx troupe check server.ts || true', '…things to mend'),
  step('npx troupe listen server.ts paid 2>&1 || true', '…unknown event paid. The server has no events…'),
  step('touch audit.jsonl && npx troupe audit audit.jsonl --since 1h || [ $? = 1 ]'),
  step('npx troupe pack server.ts 2>&1 || true', '…data/troupe.db looks like a secret or a database…'),
  step("mv data ../tables-data && npm pkg set description='Finds and books tables.' author='Ada'"),
  step('npx troupe pack server.ts && ls *.mcpb', '…tables-1.0.0.mcpb'),
  step('npx troupe build server.ts', '…has no view with an entry'),
  step('npx troupe graph server.ts booking --mermaid', '…held --> confirmed : confirm…'),
  step('npx troupe graph server.ts booking --out booking.svg && grep -c "</svg>" booking.svg', '1'),
];
