/**
 * The API of an inspector: its stream, views of actors, what-ifs, recordings, and control. The caller is already
 * authenticated.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isJson } from '../../core/http/negotiate.ts';
import { isObject, stackOf } from '../../core/protocol/json.ts';
import type { CatalogueReader } from '../catalogue/server-catalogue.ts';
import type { Observation } from '../stream/observation.ts';
import type { ProcessCoverage } from '../stream/process-coverage.ts';
import type { Viewers } from '../stream/viewers.ts';
import type { EventTraffic } from '../traffic/event-traffic.ts';
import type { Controller } from '../views/control.ts';
import { exportPage } from './export-page.ts';
import { readBody, refuseRequest, send, sendError, sendJson } from './http-answer.ts';
import type { ApiRoutes } from './listener.ts';
import type { PageFiles } from './page-files.ts';
import { InputError, readActor, readActors, readViewer, readViewerEvent } from './viewer-input.ts';
import { openStream } from './viewer-stream.ts';

interface InspectorRoutesOptions {
  readonly observation: Observation;
  readonly viewers: Viewers;
  readonly files: PageFiles;
  /** Undefined if the inspector was opened without control. */
  readonly controller: Controller | undefined;
  readonly catalogue: CatalogueReader;
  /** Undefined for a client. */
  readonly coverage: Pick<ProcessCoverage, 'frame'> | undefined;
  /** Undefined for a client. */
  readonly traffic: EventTraffic | undefined;
  /** The origin of the frames of views; undefined without control. */
  readonly frames: string | undefined;
  /** The backlog as one recording. */
  recording(): string;
  /** Logs a fault of the inspector itself. */
  log(message: string): void;
  /** The server's name, for file names. */
  readonly name: string;
}

/** Maximum length of a request body in bytes. */
const MAX_BODY = 1024 * 1024;

/** Maximum number of views of one request. */
const MAX_VIEWS = 64;

type Route = (request: IncomingMessage, response: ServerResponse, query: URLSearchParams) => void | Promise<void>;

/** Routes the paths below `/api`. */
export class InspectorRoutes implements ApiRoutes {
  readonly #options: InspectorRoutesOptions;
  readonly #get: Readonly<Record<string, Route>>;
  readonly #post: Readonly<Record<string, (body: unknown, response: ServerResponse) => void | Promise<void>>>;

  constructor(options: InspectorRoutesOptions) {
    this.#options = options;
    const { observation, viewers } = options;
    this.#get = {
      '/api/stream': (request, response, query) => {
        const since = Number(query.get('since') ?? 0);
        if (!Number.isSafeInteger(since) || since < 0)
          throw new InputError(400, `since: expected the sequence number of a record, got ${query.get('since')}`);
        openStream(request, response, viewers, readViewer(query.get('viewer')), since);
      },
      '/api/look': (_, response, query) => sendJson(response, this.#view(readActor(query.get('actor')))),
      '/api/catalogue': (_, response, query) => {
        const { catalogue } = options;
        if (query.get('version') === String(catalogue.version)) return send(response, 204);
        send(response, 200, 'application/json', catalogue.text());
      },
      '/api/coverage': (_, response) => {
        if (!options.coverage) return send(response, 204);
        sendJson(response, options.coverage.frame());
      },
      '/api/frames': (_, response) => sendJson(response, { origin: options.frames ?? null }),
      '/api/calls': async (_, response, query) =>
        sendJson(response, await this.#controller.calls(Number(query.get('since') ?? 0))),
      '/api/approvals': async (_, response) => sendJson(response, await this.#controller.approvals()),
      '/api/traffic': async (_, response) => sendJson(response, await this.#traffic.view()),
      '/api/content': async (_, response, query) =>
        sendJson(response, await this.#traffic.content(query.get('ref') ?? '')),
      '/api/event-form': (_, response, query) => sendJson(response, this.#traffic.form(query.get('name') ?? '')),
      '/api/result': (_, response, query) => sendJson(response, this.#controller.result(Number(query.get('call')))),
      '/api/recording': (_, response) =>
        send(response, 200, 'application/json', options.recording(), attachment(`${this.#name}.json`)),
      '/api/export': async (_, response) =>
        send(
          response,
          200,
          'text/html; charset=utf-8',
          exportPage(await this.#template(), options.recording()),
          attachment(`${this.#name}.html`),
        ),
    };
    this.#post = {
      '/api/focus': (body, response) => {
        const { viewer, actors } = isObject(body) ? body : {};
        if (!viewers.focus(readViewer(viewer), readActors(actors)))
          throw new InputError(404, 'viewer: unknown name. Open its stream first.');
        send(response, 204);
      },
      '/api/looks': (body, response) => {
        const { actors } = isObject(body) ? body : {};
        sendJson(response, this.#views(readActors(actors)));
      },
      '/api/what-if': (body, response) => {
        const { actor, event } = isObject(body) ? body : {};
        const address = readActor(actor);
        const found = observation.whatIf(address, readViewerEvent(event));
        if (!found) throw new InputError(404, `actor: no live actor with a statechart has the address "${address}"`);
        sendJson(response, found);
      },
      '/api/control': async (body, response) => {
        const outcome = await this.#controller.run(body);
        if (typeof outcome === 'string') send(response, 200, 'text/plain; charset=utf-8', outcome);
        else sendJson(response, outcome);
      },
    };
  }

  /** Responds to an authenticated request. */
  async serve(request: IncomingMessage, response: ServerResponse, path: string, query: string): Promise<void> {
    try {
      const get = this.#get[path];
      const post = this.#post[path];
      if (!get && !post) throw new InputError(404, `unknown path: ${path}`);
      const allow = get ? 'GET, HEAD' : 'POST';
      if ((request.method === 'POST') !== (post !== undefined))
        return refuseRequest(response, { status: 405, why: `expected ${allow}`, headers: { Allow: allow } });
      if (get) return await get(request, response, new URLSearchParams(query));
      if (!isJson(request.headers['content-type']))
        throw new InputError(415, 'Content-Type: expected application/json');
      const body = await readBody(request, MAX_BODY);
      await post?.(body, response);
    } catch (error) {
      if (!(error instanceof InputError)) this.#options.log(stackOf(error));
      sendError(response, error);
    }
  }

  /** @throws {InputError} 403 if the inspector was opened without control: viewers may only view */
  get #controller(): Controller {
    const { controller } = this.#options;
    if (controller) return controller;
    throw new InputError(403, 'this inspector has no control. Open it with control to act on the server.');
  }

  /** @throws {InputError} 404 for a client */
  get #traffic(): EventTraffic {
    const { traffic } = this.#options;
    if (traffic) return traffic;
    throw new InputError(404, 'events: this inspector shows a client');
  }

  get #name(): string {
    return `troupe-${this.#options.name.replace(/[^\w.-]+/g, '-').slice(0, 60)}`;
  }

  async #template(): Promise<string> {
    try {
      return await this.#options.files.template();
    } catch {
      throw new InputError(503, 'the page of the inspector is not built. Run "npm run build".');
    }
  }

  /** The views of those actors that are alive. Contexts are only in views of one actor. */
  #views(actors: readonly string[]): readonly object[] {
    return actors.slice(0, MAX_VIEWS).flatMap((actor) => {
      const { context: _, ...view } = this.#options.observation.view(actor) ?? {};
      return 'actor' in view ? [view] : [];
    });
  }

  #view(actor: string): object {
    const view = this.#options.observation.view(actor);
    if (!view) throw new InputError(404, `actor: no live actor has the address "${actor}"`);
    return view;
  }
}

function attachment(name: string): Readonly<Record<string, string>> {
  return { 'Content-Disposition': `attachment; filename="${name}"` };
}
