/** Posts one request and reads all of its answer, for messages that are too large or too many to be read as {@link HttpConnection} does. */
import { Agent, request } from 'node:http';
import { type Caller, type Params, parts } from './http-requests.ts';

let nextId = 0;

/** Keeps connections, as clients do. */
export function keepingAgent(): Agent {
  return new Agent({ keepAlive: true });
}

/** A message that is posted many times. @param url of the server */
export function prepare(url: URL, caller: Caller, method: string, params: Params, agent: Agent): () => Promise<string> {
  const { headers, message } = parts(caller, method, params);
  nextId += 1;
  const body = Buffer.from(JSON.stringify({ ...message, id: nextId }));
  const options = {
    agent,
    method: 'POST',
    headers: {
      ...headers,
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      'Content-Length': body.length,
    },
  };
  return () =>
    new Promise((resolve, reject) => {
      const posting = request(url, options, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => void chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`expected 200, got ${response.statusCode} ${text.slice(0, 300)}`));
        });
      });
      posting.on('error', reject);
      posting.end(body);
    });
}
