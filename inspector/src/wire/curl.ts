/** A request as a curl command that sends it again. */
import { type Plain, REDACTED } from '../../../src/inspector/frames.ts';
import type { WireExchange } from '../../../src/inspector/model/index.ts';

/** A placeholder for the server's address, which viewers do not receive. */
const ADDRESS = 'http://localhost:3000/mcp';

export function curlOf({ message, method, target }: WireExchange): string {
  const revision = inside(message, 'params', '_meta', 'io.modelcontextprotocol/protocolVersion');
  const modern = typeof revision === 'string';
  const headers = [
    'content-type: application/json',
    'accept: application/json, text/event-stream',
    ...(modern ? [`mcp-protocol-version: ${revision}`, `mcp-method: ${method}`] : ['mcp-session-id: <the session>']),
    ...(modern && target !== undefined && /^(tools|prompts|resources)\//.test(method) ? [`mcp-name: ${target}`] : []),
  ];
  const lines = [
    `curl -sS ${ADDRESS}`,
    ...headers.map((header) => `-H ${quoted(header)}`),
    `--data ${quoted(JSON.stringify(message ?? null))}`,
  ];
  const note = JSON.stringify(message ?? null).includes(REDACTED)
    ? `# what is ${REDACTED} was secret: put it in again\n`
    : '';
  return note + lines.join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function inside(value: Plain | undefined, ...names: readonly string[]): unknown {
  let inner: unknown = value;
  for (const name of names) {
    if (typeof inner !== 'object' || inner === null || !(name in inner)) return undefined;
    inner = Object.entries(inner).find(([key]) => key === name)?.[1];
  }
  return inner;
}
