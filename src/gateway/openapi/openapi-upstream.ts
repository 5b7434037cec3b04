/** The upstream of an OpenAPI document: reads and compiles it, lists its operations as tools, and calls them. */
import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../../core/execution/context.ts';
import { Watch } from '../../core/kernel/files/file-watch.ts';
import { ToolError } from '../../core/protocol/errors.ts';
import { type JsonObject, messageOf } from '../../core/protocol/json.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { compileInput } from '../../core/schema/compile-schema.ts';
import type { Checked, CompiledSchema } from '../../core/schema/schema.ts';
import { SchemaError } from '../../core/schema/schema-error.ts';
import type { DirectHost } from '../mounts/direct-target.ts';
import type { ToolDocumentation } from '../mounts/tool-finder.ts';
import type { UpstreamCatalogue } from '../mounts/upstream-catalogue.ts';
import { checkApiAuth } from './api-auth.ts';
import { compileDocument } from './compile-document.ts';
import { catalogueOf, MAX_LISTED, pinnedRequest } from './document-catalogue.ts';
import { DocumentError, type KnownSource, readOpenApi, type SourceDocument } from './document-source.ts';
import type { OpenApiOptions } from './openapi-settings.ts';
import type { ApiOperation, CompiledDocument, OperationCaller } from './operation.ts';
import { openOperationCaller } from './operation-caller.ts';

/** A document as it was last compiled. */
interface Present {
  /** Not the document itself: a large one takes fifty megabytes. */
  readonly source: KnownSource;
  readonly document: CompiledDocument;
  readonly operations: ReadonlyMap<string, ApiOperation>;
  readonly catalogue: UpstreamCatalogue;
}

export class OpenApiUpstream {
  readonly #document: string | URL | JsonObject;
  readonly #options: OpenApiOptions;
  readonly #host: DirectHost;
  #present: Present | undefined;
  /** The first reading, for calls of tools that a stored catalogue has. */
  #reading: Promise<Present> | undefined;
  /** The compiled schemas of arguments, by tool; of one document. */
  #inputs = new Map<string, CompiledSchema>();
  #caller: { readonly trusted: readonly string[]; readonly caller: Promise<OperationCaller> } | undefined;
  readonly #watch: Watch;
  #watched: ReadonlySet<string> = new Set();
  #changed: () => void = () => {};
  #failed = false;
  #closed = false;

  /** @throws {DefinitionError} for invalid credentials */
  constructor(document: string | URL | JsonObject, options: OpenApiOptions, host: DirectHost) {
    const { mount, clock, log } = host;
    checkApiAuth(mount, options.auth);
    this.#document = document;
    this.#options = options;
    this.#host = host;
    this.#watch = new Watch({
      matters: (path) => this.#watched.has(path),
      onChange: () => this.#changed(),
      say: (line) => log('info', `mount "${mount}": ${line}`, { event: 'mount' }),
      clock,
    });
  }

  get state(): string {
    if (this.#closed) return 'closed';
    if (this.#failed) return 'failed';
    return this.#present ? 'compiled' : 'reading';
  }

  /** @param changed is called when a file of the document has changed */
  async list(changed: () => void): Promise<UpstreamCatalogue> {
    this.#changed = changed;
    try {
      const { catalogue } = await this.#read();
      this.#failed = false;
      return catalogue;
    } catch (error) {
      this.#failed = true;
      throw error;
    }
  }

  /** Checks the arguments of a tool. Those of a tool that the document does not have any more are for the call to reject. */
  async check(tool: string, value: unknown): Promise<Checked<unknown>> {
    // A document that cannot be read is the error of the call.
    const operation = (await this.#compiled().catch(() => undefined))?.operations.get(tool);
    if (!operation || this.#host.settings.validate === false) return { ok: true, value };
    const checked = await this.#inputOf(tool, operation).check(value);
    // The arguments as they came: the check may have added defaults of the document, which are not sent.
    return checked.ok ? { ok: true, value } : checked;
  }

  /**
   * @param request what was judged when the tool was offered: another one is not made
   * @throws {ToolError} if the operation has changed since
   */
  async call(tool: string, args: JsonObject, request: JsonObject | undefined, ctx: Context): Promise<CallToolResult> {
    const { document, operations } = await this.#compiled().catch((error: unknown) => {
      throw new ToolError(`${this.#host.mount}: ${messageOf(error)}. The call was not carried out`, { cause: error });
    });
    const operation = operations.get(tool);
    if (!operation || !isDeepStrictEqual(pinnedRequest(operation, document), request)) {
      this.#changed();
      throw new ToolError(
        `${this.#host.mount}: the document of the API has changed, and so has this tool. The call was not carried out. List the tools again`,
      );
    }
    const caller = await this.#callerOf(document);
    return caller.call(document, operation, { ...operation.defaults, ...args }, ctx);
  }

  documented(): ReadonlyMap<string, () => ToolDocumentation> | undefined {
    return this.#present?.document.documented;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watch.close();
    await closed(this.#caller?.caller);
  }

  #compiled(): Promise<Present> {
    if (this.#present) return Promise.resolve(this.#present);
    this.#reading ??= this.#read().catch((error: unknown) => {
      this.#reading = undefined;
      throw error;
    });
    return this.#reading;
  }

  async #read(): Promise<Present> {
    const { clock, mount, settings } = this.#host;
    const before = this.#present;
    // A program that changes its object mounts another one.
    if (before && typeof this.#document === 'object' && !(this.#document instanceof URL)) return before;
    const source = await readOpenApi(this.#document, { clock, known: before?.source });
    if (!source) {
      if (before) return before;
      throw new DocumentError('the server says that the document has not changed, and it was not read before');
    }
    const { etag, digest } = source;
    const { only, except, maxListed } = settings;
    const document = compileDocument(source, { ...this.#options, only, except }, maxListed);
    const present = {
      source: { ...(etag !== undefined && { etag }), ...(digest !== undefined && { digest }) },
      document,
      operations: new Map(document.operations.map((operation) => [operation.tool.name, operation])),
      catalogue: catalogueOf(document, this.#options),
    };
    this.#present = present;
    this.#inputs = new Map();
    this.#follow(source);
    const count = document.operations.length;
    if (count > MAX_LISTED && settings.expose === undefined)
      this.#host.log(
        'info',
        `mount "${mount}": ${count} operations are found with find_tools, and no list contains them. The option is expose`,
        { event: 'mount' },
      );
    return present;
  }

  /** Watches the files of a document. */
  #follow({ path, files }: SourceDocument): void {
    if (path === undefined || this.#closed) return;
    const all = new Set([path, ...files.keys()]);
    for (const file of all) if (!this.#watched.has(file)) this.#watch.file(file);
    this.#watched = all;
  }

  #inputOf(tool: string, { checked }: ApiOperation): CompiledSchema {
    const known = this.#inputs.get(tool);
    if (known) return known;
    let input: CompiledSchema;
    try {
      input = compileInput(checked, `tool "${tool}": input`);
    } catch (error) {
      if (!(error instanceof SchemaError)) throw error;
      this.#host.log(
        'warning',
        `mount "${this.#host.mount}": the arguments of ${tool} are not checked: ${error.message}`,
        { event: 'mount' },
      );
      input = { json: { type: 'object' }, check: (value) => ({ ok: true, value }) };
    }
    this.#inputs.set(tool, input);
    return input;
  }

  /** The caller of the API. Another document may name other origins. */
  #callerOf({ trusted }: CompiledDocument): Promise<OperationCaller> {
    const before = this.#caller;
    if (before && isDeepStrictEqual(before.trusted, trusted)) return before.caller;
    void closed(before?.caller);
    const { mount, clock, log, maxResultLength, loadSignIns, readResource } = this.#host;
    const { auth, headers, async, maxResponseBytes } = this.#options;
    const [first, ...others] = trusted.map((origin) => new URL(origin));
    if (!first) throw new ToolError(`${mount}: the document names no server. Set baseUrl`);
    const caller = loadSignIns().then((signIns) =>
      openOperationCaller({
        ...{ mount, clock, log, signIns, auth, headers, async, maxResponseBytes, maxResultLength, readResource },
        trusted: [first, ...others],
      }),
    );
    this.#caller = { trusted, caller };
    // The next call tries again.
    caller.catch(() => {
      if (this.#caller?.caller === caller) this.#caller = undefined;
    });
    return caller;
  }
}

/** Closes a caller, if there is one. */
async function closed(opening: Promise<OperationCaller> | undefined): Promise<void> {
  await opening?.then(
    (caller) => caller.close(),
    () => {},
  );
}
