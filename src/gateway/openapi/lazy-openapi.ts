/** An upstream of an OpenAPI document whose code is loaded when the document is first read. */
import type { Context } from '../../core/execution/context.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import type { CompiledSchema } from '../../core/schema/schema.ts';
import type { DirectHost, DirectUpstream } from '../mounts/direct-target.ts';
import type { ToolDocumentation } from '../mounts/tool-finder.ts';
import type { UpstreamCatalogue } from '../mounts/upstream-catalogue.ts';
import type { OpenApiOptions } from './openapi-settings.ts';
import type { OpenApiUpstream } from './openapi-upstream.ts';

const REFRESH_MS = 600_000;

export class LazyOpenApi implements DirectUpstream {
  readonly #open: () => Promise<OpenApiUpstream>;
  #opening: Promise<OpenApiUpstream> | undefined;
  #opened: OpenApiUpstream | undefined;
  readonly refreshMs: number;

  constructor(document: string | URL | JsonObject, options: OpenApiOptions, host: DirectHost) {
    this.refreshMs = options.refreshMs ?? REFRESH_MS;
    this.#open = async () => {
      const { OpenApiUpstream } = await import('./openapi-upstream.ts');
      this.#opened = new OpenApiUpstream(document, options, host);
      return this.#opened;
    };
  }

  get state(): string {
    return this.#opened?.state ?? 'idle';
  }

  async list(changed: () => void): Promise<UpstreamCatalogue> {
    return (await this.#loaded()).list(changed);
  }

  inputOf(tool: string): CompiledSchema {
    return {
      json: { type: 'object' },
      check: (value) => this.#loaded().then((upstream) => upstream.check(tool, value)),
    };
  }

  async call(tool: string, args: JsonObject, request: JsonObject | undefined, ctx: Context): Promise<CallToolResult> {
    return (await this.#loaded()).call(tool, args, request, ctx);
  }

  documented(): ReadonlyMap<string, () => ToolDocumentation> | undefined {
    return this.#opened?.documented();
  }

  async close(): Promise<void> {
    // A failure is that of the listing or call that needed the code.
    await this.#opening?.then(
      (upstream) => upstream.close(),
      () => {},
    );
  }

  #loaded(): Promise<OpenApiUpstream> {
    this.#opening ??= this.#open();
    return this.#opening;
  }
}
