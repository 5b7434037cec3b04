/** Thousands of requests in little time: pipelined on a few connections, and no more read of each answer than its status and body. */
import { connect } from 'node:net';
import { wait } from '../../../src/testing/arrivals.ts';
import { HANG_MS } from '../../harness/wait.ts';

export interface Flooding {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Flooded {
  readonly status: number;
  readonly body: string;
}

const CONNECTIONS = 4;

/**
 * Sends these requests as they are, beside Host and Content-Length. Each must be answered with a body of a known length.
 *
 * @returns the answers, in the order of the requests
 * @throws {Error} when not all of them have come in time, or one has no known length
 */
export async function flood(url: string, requests: readonly Flooding[]): Promise<readonly Flooded[]> {
  const lanes = Array.from({ length: CONNECTIONS }, (_, lane) =>
    pipeline(
      url,
      requests.filter((_, index) => index % CONNECTIONS === lane),
    ),
  );
  const answers = await Promise.all(lanes);
  return requests.map((_, index) => {
    const answer = answers[index % CONNECTIONS]?.[Math.floor(index / CONNECTIONS)];
    if (!answer) throw new Error(`request ${index} was not answered`);
    return answer;
  });
}

function pipeline(url: string, requests: readonly Flooding[]): Promise<readonly Flooded[]> {
  const { hostname, port, host, pathname } = new URL(url);
  const answers: Flooded[] = [];
  const socket = connect(Number(port), hostname);
  const waiting = wait<readonly Flooded[]>(
    { what: `${requests.length} answers`, ms: HANG_MS, arrived: () => `${answers.length} had come` },
    () => socket.destroy(),
  );
  let text = '';
  socket.setEncoding('latin1');
  socket.on('error', (error) => waiting.fail(error));
  socket.on('close', () => waiting.fail(new Error(`the server closed the connection after ${answers.length} answers`)));
  socket.on('data', (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf('\r\n\r\n'); end !== -1; end = text.indexOf('\r\n\r\n')) {
      const head = text.slice(0, end);
      const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? Number.NaN);
      if (Number.isNaN(length)) return waiting.fail(new Error(`an answer without a known length: ${head}`));
      if (text.length < end + 4 + length) return;
      answers.push({ status: Number(head.slice(9, 12)), body: text.slice(end + 4, end + 4 + length) });
      text = text.slice(end + 4 + length);
    }
    if (answers.length === requests.length) waiting.settle(answers);
  });
  socket.write(
    requests
      .map(({ method, headers = {}, body = '' }) => {
        const all = { host, ...headers, 'content-length': String(Buffer.byteLength(body)) };
        const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
        return `${method} ${pathname} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
      })
      .join(''),
  );
  return waiting.promise;
}
