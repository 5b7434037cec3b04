/** A bare server over stdio for the comparison of clients: a loop over lines that knows one tool, and speaks both eras. */
import './telling.mjs';

const META = 'io.modelcontextprotocol/';
const self = { name: 'bench', version: '1.0.0' };
const capabilities = { tools: {} };
const modern = { resultType: 'complete', _meta: { [`${META}serverInfo`]: self } };
const tools = [
  {
    name: 'echo',
    description: 'Answers the text',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
];

/** The result of any request but a call. */
function resultOf(method, params) {
  if (method === 'initialize') return { protocolVersion: params.protocolVersion, capabilities, serverInfo: self };
  const cached = { ttlMs: 3_600_000, cacheScope: 'private' };
  if (method === 'server/discover')
    return { ...modern, ...cached, supportedVersions: [params._meta[`${META}protocolVersion`]], capabilities };
  if (method === 'tools/list') return params?._meta ? { ...modern, ...cached, tools } : { tools };
  return {};
}

let rest = '';
process.stdin.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop() ?? '';
  let out = '';
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const content = [{ type: 'text', text: params?.arguments?.text ?? '' }];
    const isModern = params?._meta?.[`${META}protocolVersion`] !== undefined;
    const called = isModern ? { ...modern, content } : { content };
    out += `${JSON.stringify({ jsonrpc: '2.0', id, result: method === 'tools/call' ? called : resultOf(method, params) })}\n`;
  }
  if (out !== '') process.stdout.write(out);
});
