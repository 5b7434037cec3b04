/** The server of an OpenAPI document, for the commands that connect: it has the operations of the document under their own names. */
import { basename } from 'node:path';
import { ClientError } from '../../client/client-errors.ts';
import { openDoor } from '../../client/in-memory.ts';
import type { OperatorLog } from '../../core/kernel/operator-log.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { LOCAL } from '../../core/protocol/principals.ts';
import { createServer, type Server } from '../../features/server/server.ts';
import { addressOf } from '../../gateway/openapi/document-source.ts';
import { openapi } from '../../gateway/openapi/openapi-target.ts';
import { say } from '../usage.ts';
import type { ApiTarget } from './call-target.ts';

export type OpenedApi = Server;

/** @throws {ClientError} if the document cannot be read */
export async function openedApi({ openapi: document, api }: ApiTarget): Promise<OpenedApi> {
  const messages: string[] = [];
  const log: OperatorLog = (level, message) => {
    if (level !== 'info') messages.push(message);
  };
  const server = createServer({ name: nameOf(document), version: '1', log });
  try {
    const mount = await server.mount('api', openapi(document, api), { prefix: false, expose: 'all', pins: 'off' });
    await mount.ready();
    for (const message of messages) say(message);
    // The API asks the person at this machine for a key, and not a stranger.
    await openDoor(server, { principal: LOCAL });
    return server;
  } catch (error) {
    await server.close();
    throw new ClientError(document, {
      reason: 'unreachable',
      message: messageOf(error),
      carriedOut: 'no',
      cause: error,
    });
  }
}

/** The name of an API without its document: that of the host, or of the file. */
function nameOf(document: string): string {
  const address = addressOf(document);
  return address ? address.hostname : basename(document).replace(/\.[^.]*$/, '') || 'openapi';
}
