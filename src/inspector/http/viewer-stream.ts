/**
 * The stream of one viewer over HTTP: frames as server-sent events. The page reads them with `fetch`, so that it can
 * send its token.
 */
import { Buffer } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Viewers } from '../stream/viewers.ts';
import { HEADERS } from './token-guard.ts';
import { InputError } from './viewer-input.ts';

const BEFORE = Buffer.from('data: ');
const AFTER = Buffer.from('\n\n');

/** @throws {InputError} if there are too many viewers */
export function openStream(
  request: IncomingMessage,
  response: ServerResponse,
  viewers: Viewers,
  name: string,
  since: number,
): void {
  if (!viewers.admits(name))
    throw new InputError(503, `${viewers.size} viewers are connected, which is the limit. Close one of them.`);
  response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  if (request.method === 'HEAD') return void response.end();
  const viewer = viewers.open(name, since, {
    write(frame) {
      // One write: three writes would be three packets.
      return response.write(Buffer.concat([BEFORE, typeof frame === 'string' ? Buffer.from(frame) : frame, AFTER]));
    },
    alive: () => void response.write(': open\n\n'),
    end: () => void response.end(),
  });
  response.on('drain', () => viewer.drained());
  response.on('close', () => viewers.gone(name, viewer));
}
