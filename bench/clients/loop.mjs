/** The floor of clients: a bare loop over `node:http` with keep-alive, or over the pipes of a child. No client can be faster by much. */
import { spawn } from 'node:child_process';
import { Agent, request } from 'node:http';
import { asked, calling, STDIO_SERVER } from './calling.mjs';

const LEGACY = '2025-11-25';
const MODERN = '2026-07-28';
const self = { name: 'bench', version: '1.0.0' };
const META = 'io.modelcontextprotocol/';
const described = {
  [`${META}protocolVersion`]: MODERN,
  [`${META}clientInfo`]: self,
  [`${META}clientCapabilities`]: {},
};

const { url, isModern } = asked();
const [send, close] = url ? overHttp(url) : overPipes();
let lastId = 0;

/** A request. @returns its result */
function ask(method, params) {
  lastId += 1;
  return send(lastId, method, { jsonrpc: '2.0', id: lastId, method, params });
}

if (!isModern) {
  await ask('initialize', { protocolVersion: LEGACY, capabilities: {}, clientInfo: self });
  await send(undefined, 'notifications/initialized', { jsonrpc: '2.0', method: 'notifications/initialized' });
}

calling(async (text) => {
  const called = { name: 'echo', arguments: { text } };
  const { content } = await ask('tools/call', isModern ? { ...called, _meta: described } : called);
  return content[0]?.text;
}, close);

function overHttp({ hostname, port, pathname }) {
  const agent = new Agent({ keepAlive: true });
  let session;
  const send = (id, method, message) =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(message);
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'content-length': Buffer.byteLength(body),
      };
      if (isModern) {
        headers['mcp-protocol-version'] = MODERN;
        headers['mcp-method'] = method;
        headers['mcp-name'] = message.params.name;
      } else if (session !== undefined) {
        headers['mcp-protocol-version'] = LEGACY;
        headers['mcp-session-id'] = session;
      }
      const sent = request({ hostname, port, path: pathname, method: 'POST', agent, headers }, (response) => {
        session ??= response.headers['mcp-session-id'];
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          text += chunk;
        });
        response.on('end', () => {
          if (id === undefined) return resolve(undefined);
          const answer = JSON.parse(text);
          if (answer.id !== id) return reject(new Error(`expected the answer to ${id}, got ${text}`));
          resolve(answer.result);
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  return [send, async () => agent.destroy()];
}

function overPipes() {
  const [command, ...args] = STDIO_SERVER;
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { id, result } = JSON.parse(line);
      waiting.get(id)?.(result);
      waiting.delete(id);
    }
  });
  let out = '';
  const send = (id, _method, message) => {
    // One write for all requests that the answers of one chunk lead to.
    if (out === '')
      process.nextTick(() => {
        child.stdin.write(out);
        out = '';
      });
    out += `${JSON.stringify(message)}\n`;
    if (id === undefined) return Promise.resolve();
    return new Promise((resolve) => void waiting.set(id, resolve));
  };
  return [send, async () => void child.stdin.end()];
}
