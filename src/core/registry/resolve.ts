/**
 * The request handling of each registry: answers lists from the catalogue, resolves names to references and forwards
 * calls to the executor.
 */

import type { CompletionCall, PromptCall, ResourceRead, ToolCall } from '../execution/execution.ts';
import type { AfterTurn } from '../kernel/actor.ts';
import type { ListView } from '../messages/authorization-rule.ts';
import type { ExecutorMail } from '../messages/executor-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Element } from '../messages/registry-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Page } from '../messages/results.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import type { Complete } from '../protocol/operations.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../protocol/types.ts';
import { compile, matchPattern, type Pattern } from '../protocol/uri-template/match-uri.ts';
import { parseTemplate, type UriTemplate } from '../protocol/uri-template.ts';
import { showsViews } from '../protocol/views.ts';
import { misrouted, respond } from '../requests/active-request.ts';
import { checkParameterHeaders } from '../requests/mirrored-headers.ts';
import type { Catalogue } from './catalogue.ts';

/** The data of a call that its executor receives. The executor holds the implementation itself. */
export type ToolTarget = Omit<ToolCall, 'implementation'>;
export type ResourceTarget = Omit<ResourceRead, 'implementation'>;
export type PromptTarget = Omit<PromptCall, 'implementation'>;
export type CompletionTarget = Omit<CompletionCall, 'completer'>;

type To<T> = Pick<Mailbox<ExecutorMail<never, T>>, 'send'>;

type Serve = (request: RequestView, afterwards: AfterTurn) => void;

/** Returns the known names that an unknown one may mean, as the end of an error. */
type NameHint = (name: string) => string;

/**
 * @param show the definition of a tool as clients list it
 * @param hint not asked where rules decide which tools a caller may know of
 */
export function serveTools(
  catalogue: Catalogue<Tool>,
  pageSize: number,
  executor: To<ToolTarget>,
  show?: (tool: Tool, element: Element<Tool>) => Tool,
  hint?: NameHint,
): Serve {
  const page = pages(
    catalogue,
    (cursor, view, forViews): Page => ({
      of: 'tools',
      ...catalogue.slice(cursor, pageSize, isTool, view, forViews, show),
      ...catalogue.listHints,
      ...scopeOf(view, forViews),
    }),
  );
  return (request, afterwards) => {
    const { operation } = request;
    switch (operation.method) {
      case 'tools/list':
        return sendPage(request, page(operation.cursor, request));
      case 'tools/call': {
        const element = request.hidden ? undefined : catalogue.get(operation.name);
        if (!element) throw unknownName('tool', operation.name, request, hint);
        // Clients mirror the parameters of tools that are listed.
        if (request.exchange && request.client.dialect.era === 'modern' && typeof element.listed !== 'object')
          checkParameterHeaders(request.exchange.incoming, element.definition, operation.arguments);
        const target = { tool: element.definition, arguments: operation.arguments };
        return afterwards(executor.send, { type: 'execute', request, ref: element.ref, target });
      }
      default:
        throw misrouted(request, 'the tools registry');
    }
  };
}

export function servePrompts(
  catalogue: Catalogue<Prompt>,
  pageSize: number,
  executor: To<PromptTarget>,
  completions: To<CompletionTarget>,
  hint?: NameHint,
): Serve {
  const page = pages(
    catalogue,
    (cursor, view): Page => ({
      of: 'prompts',
      ...catalogue.slice(cursor, pageSize, isPrompt, view),
      ...catalogue.listHints,
      ...scopeOf(view, false),
    }),
  );
  const find = (request: RequestView, name: string): Element<Prompt> => {
    const element = request.hidden ? undefined : catalogue.get(name);
    if (!element) throw unknownName('prompt', name, request, hint);
    return element;
  };
  return (request, afterwards) => {
    const { operation } = request;
    switch (operation.method) {
      case 'prompts/list':
        return sendPage(request, page(operation.cursor, request));
      case 'prompts/get': {
        const { ref, definition } = find(request, operation.name);
        const target = { prompt: definition, arguments: operation.arguments };
        return afterwards(executor.send, { type: 'execute', request, ref, target });
      }
      case 'completion/complete':
        if (operation.ref.type !== 'ref/prompt') throw misrouted(request, 'the prompts registry');
        return complete(request, operation, find(request, operation.ref.name).ref, completions, afterwards);
      default:
        throw misrouted(request, 'the prompts registry');
    }
  };
}

export function serveResources(
  catalogue: Catalogue<Resource | ResourceTemplate>,
  pageSize: number,
  executor: To<ResourceTarget>,
  completions: To<CompletionTarget>,
): Serve {
  const resources = pages(
    catalogue,
    (cursor, view, forViews): Page => ({
      of: 'resources',
      ...catalogue.slice(cursor, pageSize, isResource, view, forViews),
      ...catalogue.listHints,
      ...scopeOf(view, forViews),
    }),
  );
  const templates = pages(
    catalogue,
    (cursor, view, forViews): Page => ({
      of: 'resourceTemplates',
      ...catalogue.slice(cursor, pageSize, isTemplate, view, forViews),
      ...catalogue.listHints,
      ...scopeOf(view, forViews),
    }),
  );
  const resolve = resolver(catalogue);
  const find = (request: RequestView, uri: string): ResolvedResource => {
    const resolved = request.hidden ? undefined : resolve(uri);
    if (!resolved)
      throw new ProtocolError(request.client.dialect.resourceNotFound, 'Resource not found', {
        uri: uri.slice(0, 2_048),
      });
    return resolved;
  };
  return (request, afterwards) => {
    const { operation } = request;
    switch (operation.method) {
      case 'resources/list':
        return sendPage(request, resources(operation.cursor, request));
      case 'resources/templates/list':
        return sendPage(request, templates(operation.cursor, request));
      case 'resources/read': {
        const { element, uri, variables } = find(request, operation.uri);
        const target = { uri, resource: element.definition, variables };
        return afterwards(executor.send, { type: 'execute', request, ref: element.ref, target });
      }
      case 'completion/complete': {
        if (operation.ref.type !== 'ref/resource') throw misrouted(request, 'the resources registry');
        const { uri } = operation.ref;
        // The reference is a template, or a URI that a template matches (2026-07-28 completion, "CompleteRequest").
        const element = request.hidden ? undefined : (catalogue.get(uri) ?? resolve(uri)?.element);
        if (!element) throw new ProtocolError(ErrorCode.InvalidParams, `Unknown resource template: ${short(uri)}`);
        return complete(request, operation, element.ref, completions, afterwards);
      }
      default:
        throw misrouted(request, 'the resources registry');
    }
  };
}

interface ResolvedResource {
  readonly element: Element<Resource | ResourceTemplate>;
  /** The URI as the program spells it, where a resource has it. */
  readonly uri: string;
  readonly variables: ResourceTarget['variables'];
}

/** The spelling of a URI that can be read: a resource has it, or a template matches it. Undefined for any other URI. */
export function speller(catalogue: Catalogue<Resource | ResourceTemplate>): (uri: string) => string | undefined {
  const resolve = resolver(catalogue);
  return (uri) => resolve(uri)?.uri;
}

/** Clients spell such URIs in several ways: some encode each character that RFC 3986 does not allow. */
const SPELLED = /[^!-$&-~]/;

/**
 * Resolves a URI: first to the resource with this URI, in any encoding, then to the first matching template. Patterns are
 * compiled once for each version of the catalogue.
 */
export function resolver(
  catalogue: Catalogue<Resource | ResourceTemplate>,
): (uri: string) => ResolvedResource | undefined {
  let version = -1;
  let templates: { readonly key: string; readonly template: UriTemplate }[] = [];
  let spelled: { readonly key: string; readonly pattern: Pattern }[] = [];
  return (uri) => {
    const exact = catalogue.get(uri);
    if (exact && isResource(exact.definition)) return { element: exact, uri, variables: {} };
    if (version !== catalogue.version) {
      version = catalogue.version;
      templates = catalogue
        .all()
        .flatMap(({ key, definition, enabled }) =>
          enabled && isTemplate(definition) ? [{ key, template: parseTemplate(key) }] : [],
        );
      spelled = catalogue
        .all()
        .flatMap(({ key, definition, enabled }) =>
          enabled && isResource(definition) && SPELLED.test(key) ? [{ key, pattern: compile([key]) }] : [],
        );
    }
    for (const { key, pattern } of spelled) {
      const element = matchPattern(pattern, uri) && catalogue.get(key);
      if (element) return { element, uri: key, variables: {} };
    }
    for (const { key, template } of templates) {
      const variables = template.match(uri);
      const element = variables && catalogue.get(key);
      if (element) return { element, uri, variables };
    }
    return undefined;
  };
}

/**
 * Pages of callers that see a part of a list are in no shared cache, because other callers see another part; so are those of
 * clients that show views, if they list more.
 */
function scopeOf(view: ListView | undefined, forViews: boolean): { readonly scope?: 'private' } {
  return view || forViews ? PRIVATE : PUBLIC;
}

const PRIVATE = { scope: 'private' } as const;
const PUBLIC = {};

type MakePage = (cursor: string | undefined, view: ListView | undefined, forViews: boolean) => Page;

type Cursor = string | undefined;

/** The pages of one list. */
interface KeptPages {
  everything: Map<Cursor, Page>;
  ofView: WeakMap<ListView, Map<Cursor, Page>>;
}

const noPages = (): KeptPages => ({ everything: new Map(), ofView: new WeakMap() });

/**
 * Caches each page as one object until the catalogue changes, so that it is serialized once and not for each client;
 * the pages of a view as long as the view exists. Clients that show views share pages of their own, if they list more.
 */
export function pages(
  catalogue: { readonly version: number; readonly hasMoreForViews: boolean },
  make: MakePage,
): (cursor: Cursor, request: RequestView) => Page {
  let version = -1;
  let kept = noPages();
  let keptForViews: KeptPages | undefined;
  return (cursor, { view, client }) => {
    if (version !== catalogue.version) {
      version = catalogue.version;
      kept = noPages();
      keptForViews = catalogue.hasMoreForViews ? noPages() : undefined;
    }
    const forViews = keptForViews !== undefined && showsViews(client.capabilities);
    const { everything, ofView } = (forViews && keptForViews) || kept;
    const known = view ? (ofView.get(view) ?? new Map<Cursor, Page>()) : everything;
    let page = known.get(cursor);
    if (!page) {
      page = make(cursor, view, forViews);
      // Cursors come from clients. The cache is bounded by the number of pages that an honest client can request.
      if (known.size < MAX_KEPT_PAGES) known.set(cursor, page);
      if (view) ofView.set(view, known);
    }
    return page;
  };
}

const MAX_KEPT_PAGES = 64;

/** Responds to a request with a page. */
export function sendPage(request: RequestView, page: Page): void {
  respond(request, { ok: true, result: { kind: 'list', page } });
}

function complete(
  request: RequestView,
  { argument, resolved }: Complete,
  ref: number,
  completions: To<CompletionTarget>,
  afterwards: AfterTurn,
): void {
  afterwards(completions.send, { type: 'execute', request, ref, target: { argument, chosen: resolved } });
}

/** MCP tools, "Error Handling", and prompts: an unknown name is a protocol error. */
function unknownName(kind: 'tool' | 'prompt', name: string, { guarded }: RequestView, hint?: NameHint): ProtocolError {
  const known = guarded ? '' : (hint?.(name) ?? '');
  return new ProtocolError(ErrorCode.InvalidParams, `Unknown ${kind}: ${short(name)}${known}`);
}

function short(name: string): string {
  return name.length > 128 ? `${name.slice(0, 128)}…` : name;
}

const isTool = (_: Tool): _ is Tool => true;
const isPrompt = (_: Prompt): _ is Prompt => true;
const isResource = (definition: Resource | ResourceTemplate): definition is Resource => 'uri' in definition;
const isTemplate = (definition: Resource | ResourceTemplate): definition is ResourceTemplate =>
  'uriTemplate' in definition;
