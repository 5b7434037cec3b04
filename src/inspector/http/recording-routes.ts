/** The API of a page that shows a recording: the recording instead of a stream. The caller is already authenticated. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { send, sendError } from './http-answer.ts';
import type { ApiRoutes } from './listener.ts';
import { InputError } from './viewer-input.ts';

export class RecordingRoutes implements ApiRoutes {
  readonly #name: string;
  readonly #text: string;

  /**
   * @param name the name of the file, for the page
   * @param text a document, or lines of frames
   */
  constructor(name: string, text: string) {
    this.#name = name;
    this.#text = text;
  }

  async serve(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    if (path !== '/api/stream' || request.method === 'POST')
      return sendError(response, new InputError(404, `${path}: this page shows a recording, and has no server`));
    const named = { 'Content-Disposition': `inline; filename*=UTF-8''${encodeURIComponent(this.#name)}` };
    send(response, 200, 'application/json', this.#text, named);
  }
}
