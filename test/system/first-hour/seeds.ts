/** The steps of the newcomer's own server (test/fixtures/seeds): a project, tests, calls, OAuth, a proxy. The page is seen by hour.ts. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { CommandStep, FileStep, Step } from './steps.ts';

const FIXTURE = new URL('../../fixtures/seeds/', import.meta.url);
const command = (text: string, output = ''): CommandStep => ({ kind: 'command', text: `${text}\n`, output });
const file = (name: string): FileStep => ({
  kind: 'file',
  name,
  text: readFileSync(fileURLToPath(new URL(name, FIXTURE)), 'utf8'),
});

const HOST = 'seeds.example.com';
const LIST = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'hour', version: '1.0.0' } },
});
const ASKED = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'request_create',
    arguments: { lot: 'leek-24', gardener: 'Grace' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'hour', version: '1.0.0' },
      'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } },
    },
  },
});
const POST = `curl -s -i http://127.0.0.1:$PROXY/mcp -H 'host: ${HOST}' -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -d '${LIST}'`;
const URL_OF = 'http://127.0.0.1:$PORT/mcp';
const AS = (token: string): string => `--header "authorization: Bearer ${token}"`;

/** The project and its tests. */
export const PROJECT: readonly Step[] = [
  command('npx --yes troupe init seeds\ncd seeds\nnpm install\nnpm install xstate jose', '…Created package.json…'),
  ...['server.ts', 'request.ts', 'server.test.ts', 'issuer.ts'].map(file),
  command('npm run check'),
  command('npm test', '…pass 4…'),
  command('npx troupe call server.ts find_lots since=2022', '…"kale-22"…'),
  command('npx troupe call server.ts germination_report', '…Blue leek: not tested…'),
  command('npx troupe call server.ts discard_lot lot=leek-24 --answer sure=true', '…Discarded leek-24.…'),
  command('npx troupe call server.ts wish species=leek --data data', '…You wish for leek.…'),
  command('npx troupe call server.ts wish species=kale --data data', '…You wish for leek, kale.…'),
  command('npx troupe call server.ts --read seeds://lots/kale-22', '…Curly kale…'),
  command('npx troupe call server.ts --prompt label id=kale-22', '…Write a label…Curly kale of 2022…'),
  command(
    `handle=$(npx troupe call server.ts request_create lot=kale-22 gardener=Ada --answer packets=2 --data data --json | sed -n 's/.*"handle": "\\([^"]*\\)".*/\\1/p' | head -1)\nnpx troupe call server.ts request_approve handle=$handle --data data`,
    '…approve: open → reserved…',
  ),
  command('npx troupe call server.ts request_get handle=$handle --data data', '…reserved…'),
  command('npx troupe graph server.ts request --table', '…after 14 d…'),
  command('npx troupe types server.ts --out seeds.types.ts && npx troupe types server.ts --check --out seeds.types.ts'),
];

/** Sign-in, and a proxy before the server. */
export const DEPLOY: readonly Step[] = [
  command(
    `export RESOURCE=https://${HOST}/mcp\nnode --import tsx issuer.ts > issuer.log &\nwhile ! grep -q ^issuer issuer.log; do sleep 0.2; done`,
  ),
  command(
    "export ISSUER=$(sed -n 's/^issuer //p' issuer.log) READER=$(sed -n 's/^token none: //p' issuer.log) WRITER=$(sed -n 's/^token seeds:write: //p' issuer.log)\n" +
      `export PUBLIC_HOST=${HOST}\nnode_modules/.bin/troupe serve server.ts --http $PORT --data data2 &`,
    `…troupe serve: seeds 1.0.0 at …, behind a proxy at https://${HOST}/mcp; connect clients with:…claude mcp add --transport http seeds https://${HOST}/mcp…`,
  ),
  command(`npx troupe call ${URL_OF} find_lots ${AS('$READER')}`, '…"bean-19"…'),
  command(`npx troupe call ${URL_OF} || test $? = 4`, '…Sign in first: troupe login …'),
  command(
    `npx troupe call ${URL_OF} record_test lot=kale-22 sown=10 sprouted=8 ${AS('$READER')} || test $? = 4`,
    '…Sign in again, to be granted seeds:write…',
  ),
  command(`npx troupe call ${URL_OF} record_test lot=kale-22 sown=10 sprouted=8 ${AS('$WRITER')}`, '…"rate": 80…'),
];

/** With Caddy before the server. */
export const PROXY: readonly Step[] = [
  command(
    `cat > Caddyfile <<EOF\n{\n\tadmin off\n\tauto_https off\n}\nhttp://${HOST}:$PROXY {\n\tbind 127.0.0.1\n\treverse_proxy 127.0.0.1:$PORT\n}\nEOF\ncaddy run --adapter caddyfile --config Caddyfile &\nwhile ! curl -s -o /dev/null http://127.0.0.1:$PROXY/; do sleep 0.2; done`,
  ),
  command(POST, `…401 Unauthorized…resource_metadata="https://${HOST}/.well-known/oauth-protected-resource/mcp"…`),
  command(`${POST} -H "authorization: Bearer $READER"`, '…200 OK…"serverInfo":{"name":"seeds"…'),
  command(
    `curl -s http://127.0.0.1:$PROXY/.well-known/oauth-protected-resource/mcp -H 'host: ${HOST}'`,
    `…"resource":"https://${HOST}/mcp"…`,
  ),
];

/** The end of what runs beside the shell. */
export const END: readonly Step[] = [
  command('for job in $(jobs -p); do kill $job || true; done\nwait\nunset ISSUER RESOURCE PUBLIC_HOST'),
];

/** The page: the server under `troupe dev`, and calls that it shows. */
export const SEEN: readonly Step[] = [
  command(
    'node_modules/.bin/troupe dev server.ts --http $PORT --data data3 > dev.log 2>&1 &\nwhile ! grep -q "loaded in" dev.log; do sleep 0.2; done\ncat dev.log',
    '…inspector at http://127.0.0.1:…',
  ),
  command(`npx troupe call ${URL_OF} find_lots since=2022`, '…"kale-22"…'),
  command(`npx troupe call ${URL_OF} request_create lot=kale-22 gardener=Ada --answer packets=2`, '…open…'),
  // A client whose user has not answered yet.
  command(
    `curl -s ${URL_OF} -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: tools/call' -H 'mcp-name: request_create' -d '${ASKED}'`,
    '…input_required…How many packets of leek-24?…',
  ),
];
