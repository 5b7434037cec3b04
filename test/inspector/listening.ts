/** Asks an inspector over bare sockets: a test says every header itself. */
import { connect } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface Ask {
  readonly method?: string;
  readonly path?: string;
  /** `null` leaves one out that is there by default (Host). */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: string;
}

/** One request on a connection of its own. */
export function ask(port: number, { method = 'GET', path = '/', headers = {}, body }: Ask = {}): Promise<Answer> {
  const all: Record<string, string | null> = {
    Host: `127.0.0.1:${port}`,
    Connection: 'close',
    ...(body === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': String(Buffer.byteLength(body)) }),
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) => (value === null ? [] : [`${name}: ${value}`]));
  return raw(port, `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body ?? ''}`);
}

/** Sends a text as it is, and reads the answer until the connection is closed. */
export function raw(port: number, text: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let got = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      got += chunk;
    });
    socket.on('error', (error) => (got === '' ? reject(error) : resolve(answerOf(got))));
    socket.on('close', () => resolve(answerOf(got)));
  });
}

function answerOf(text: string): Answer {
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  return { status: Number(first.split(' ')[1]), headers, body: text.slice(end + 4) };
}
