/**
 * The two tools in place of the tools of mounts with `expose: 'search'`: `find_tools` finds tools by words, `call_tool` calls
 * one by its name. A call by name becomes a call of that tool before its rules are asked, so that rules, limits, questions,
 * tasks and progress are those of the tool.
 */

import type { Context } from '../../core/execution/context.ts';
import { listViewOf } from '../../core/execution/request-context.ts';
import type { RequestGate, Stages } from '../../core/execution/stages.ts';
import type { Element } from '../../core/messages/registry-messages.ts';
import type { RequestMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isJsonObject, isThenable } from '../../core/protocol/json.ts';
import { writeExact } from '../../core/protocol/json-text.ts';
import type { Operation } from '../../core/protocol/operations.ts';
import type { CallToolResult, Tool } from '../../core/protocol/types.ts';
import type { AnyTool } from '../../core/registry/define.ts';
import type { Registration } from '../../core/registry/registration.ts';
import { hideElement, setOperation } from '../../core/requests/active-request.ts';
import { memberTypes } from '../../core/schema/written-types.ts';
import { FIND_TOOL } from './define-mount.ts';
import type { FoundMount, ToolFinder } from './tool-finder.ts';
import { type IndexedTool, isFoundBy, ToolIndex } from './tool-index.ts';

const CALL_TOOL = 'call_tool';

/** The source of both tools in the registry. */
const SOURCE = 'search in mounts';
/** Tools that a search returns, unless its caller wants another number. */
const USUAL = 5;
const MOST = 20;
/** Maximum number of characters of the result of a search. */
const MAX_RESULT = 8_000;
/** Maximum number of characters of a signature, and of a description, in a list. */
const MAX_SIGNATURE = 600;
const MAX_LINE = 200;
/** Names that the answer to an unknown name suggests. */
const NEAR = 3;

export interface SearchHost {
  readonly catalogue: {
    readonly version: number;
    all(): readonly Element<Tool>[];
    get(key: string): Element<Tool> | undefined;
  };
  /** Sets the part of the list of tools that the caller of a request sees. */
  seeTools(request: RequestView): Promise<undefined> | undefined;
  /** Registers the two tools. */
  readonly tools: Pick<Registration<AnyTool>, 'replaceSource'>;
  readonly stages: Pick<Stages, 'fill' | 'empty' | 'route'>;
}

export class SearchTools implements ToolFinder {
  readonly #host: SearchHost;
  /** The calls by name that have become calls of their tools, as they were. */
  readonly #named = new WeakMap<RequestView, Operation>();
  /** The way on from the stage `find`. */
  #next: (mail: RequestMail) => void = () => {};
  readonly #index = new ToolIndex();
  #version = -1;
  #mounts: readonly string[] = [];

  constructor(host: SearchHost) {
    this.#host = host;
  }

  /** Offers both tools with the first mount. @throws {DefinitionError} if a tool of the server has one of their names */
  add({ name }: FoundMount): void {
    if (!this.#mounts.includes(name)) this.#offer([...this.#mounts, name]);
  }

  /** Withdraws both tools with the last mount. */
  remove(mount: string): void {
    if (this.#mounts.includes(mount)) this.#offer(this.#mounts.filter((name) => name !== mount));
  }

  #offer(mounts: readonly string[]): void {
    this.#host.tools.replaceSource(SOURCE, mounts.length === 0 ? [] : this.#definitions(mounts));
    const used = mounts.length > 0;
    const { stages } = this.#host;
    const change = used ? 'fill' : 'empty';
    stages[change]('find', this.#find);
    stages[change]('found', this.#found);
    this.#mounts = mounts;
  }

  #definitions(mounts: readonly string[]): readonly AnyTool[] {
    return [
      {
        name: FIND_TOOL,
        description: `Finds tools by what they do, among those of: ${mounts.join(', ')}. Each line of the result is the signature of a tool; call it with ${CALL_TOOL}. The exact name of a tool returns its whole description and schema.`,
        input: {
          type: 'object',
          properties: {
            query: { type: 'string', description: 'What the tool does, in a few words, such as "create an issue".' },
            limit: { type: 'integer', minimum: 1, maximum: MOST, description: `Most tools. Default ${USUAL}.` },
          },
          required: ['query'],
          additionalProperties: false,
        },
        annotations: { readOnlyHint: true, openWorldHint: false },
        handler: (args: { readonly query: string; readonly limit?: number }, ctx: Context) => this.#search(args, ctx),
      },
      {
        name: CALL_TOOL,
        description: `Calls a tool that ${FIND_TOOL} has found. The result is that of the tool.`,
        input: {
          type: 'object',
          properties: {
            name: { type: 'string', description: 'The name of the tool.' },
            arguments: { type: 'object', description: 'Its arguments, as its signature says.' },
          },
          required: ['name'],
          additionalProperties: false,
        },
        handler: ({ name }: { readonly name: string }, ctx: Context) => this.#unknown(name, ctx),
      },
    ];
  }

  /** Makes a call by name a call of the tool. */
  readonly #find: RequestGate = (mail, next) => {
    const { request } = mail;
    const { operation } = request;
    if (operation.method !== 'tools/call' || (operation.name !== FIND_TOOL && operation.name !== CALL_TOOL))
      return next(mail);
    this.#next = next;
    if (operation.name === FIND_TOOL) return this.#itself(mail);
    const { name, arguments: args = {} } = operation.arguments;
    const element = typeof name === 'string' ? this.#host.catalogue.get(name) : undefined;
    if (!element || !isFoundBy('search', element) || !isJsonObject(args)) return this.#itself(mail);
    this.#named.set(request, operation);
    setOperation(request, { ...operation, name: element.key, arguments: args });
    next(mail);
  };

  /** A caller that may not know of the tool gets the answer of an unknown name. */
  readonly #found: RequestGate = (mail, next) => {
    const { request } = mail;
    const named = this.#named.get(request);
    if (!named || !request.hidden) return next(mail);
    this.#named.delete(request);
    hideElement(request, false);
    setOperation(request, named);
    this.#itself(mail);
  };

  /** Lets a call of one of the two tools go on, which finds among the tools that its caller sees. */
  #itself(mail: RequestMail): void {
    const next = this.#next;
    const seeing = this.#host.seeTools(mail.request);
    if (isThenable(seeing)) void seeing.then(() => next(mail));
    else next(mail);
  }

  async #search({ query, limit = USUAL }: { query: string; limit?: number }, ctx: Context): Promise<CallToolResult> {
    const visible = this.#visibleTo(ctx);
    const exact = this.#host.catalogue.get(query.trim());
    if (exact && isFoundBy('search', exact) && visible(exact.key)) return text(whole(exact.definition));
    const { tools, matches } = await this.#matching(query, limit, visible);
    if (tools.length === 0) return text(`No tool matches "${oneLine(query, MAX_LINE)}". Use other words.`);
    const lines: string[] = [];
    let length = 0;
    for (const { key, definition } of tools) {
      const line = `${signature(key, definition)}\n  ${oneLine(definition.description, MAX_LINE)}`;
      length += line.length;
      if (length > MAX_RESULT && lines.length > 0) break;
      lines.push(line);
    }
    const more = matches - lines.length;
    return text([...lines, ...(more > 0 ? [`${more} more match less well.`] : [])].join('\n'));
  }

  /** The answer to a name that does not exist, or that its caller must not know of. */
  async #unknown(name: string, ctx: Context): Promise<CallToolResult> {
    const { tools } = await this.#matching(name, NEAR, this.#visibleTo(ctx));
    const near = tools.map(({ key, definition }) => `\n${signature(key, definition)}`).join('');
    const next = near === '' ? ` Find its name with ${FIND_TOOL}.` : ` Did you mean one of these?${near}`;
    return { ...text(`${FIND_TOOL} has no tool "${oneLine(name, 128)}".${next}`), isError: true };
  }

  async #matching(query: string, limit: number, visible: (key: string) => boolean) {
    const { catalogue } = this.#host;
    while (this.#version !== catalogue.version) {
      const { version } = catalogue;
      const searched = (): readonly IndexedTool[] => catalogue.all().filter((element) => isFoundBy('search', element));
      await this.#index.update(searched);
      this.#version = version;
    }
    return this.#index.find(query, limit, visible);
  }

  #visibleTo(ctx: Context): (key: string) => boolean {
    const view = listViewOf(ctx);
    return (key) => view?.hides.has(key) !== true;
  }
}

/** The name of a tool with its parameters, on one line. */
function signature(key: string, { inputSchema }: Tool): string {
  return oneLine(`${key}(${memberTypes(inputSchema).join(', ')})`, MAX_SIGNATURE);
}

/** The whole definition, within the bound of a result. */
function whole({ name, title, description, inputSchema, outputSchema }: Tool): string {
  const parts = [
    `${name}${title === undefined ? '' : ` (${oneLine(title, MAX_LINE)})`}`,
    typeof description === 'string' ? description : '',
    `Input: ${writeExact(inputSchema)}`,
    ...(outputSchema ? [`Output: ${writeExact(outputSchema)}`] : []),
  ];
  const all = parts.join('\n');
  return all.length <= 2 * MAX_RESULT ? all : `${all.slice(0, 2 * MAX_RESULT)}…`;
}

/** The start of a text on one line: a description must not look like another tool. */
function oneLine(text: unknown, most: number): string {
  const line = (typeof text === 'string' ? text : '').replace(/\s+/g, ' ').trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

function text(of: string): CallToolResult {
  return { content: [{ type: 'text', text: of }] };
}
