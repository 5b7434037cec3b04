/** Targets of mounts that answer without MCP: their tools are made in this process, and a call gets the context of its caller. */
import type { Context } from '../../core/execution/context.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import type { CompiledSchema } from '../../core/schema/schema.ts';
import type { ReadBytes } from './read-for-caller.ts';
import type { SignIns } from './sign-ins.ts';
import type { Exposure, ToolDocumentation } from './tool-finder.ts';
import type { UpstreamCatalogue } from './upstream-catalogue.ts';

/** A member of each target without MCP, of each copy of this package. */
const DIRECT = Symbol.for('troupe.direct');

/** A target without MCP, such as that of `openapi()`. */
export interface DirectTarget {
  /** The target as logs show it, without secrets. */
  readonly name: string;
  /** Identifies the target, without its secrets: the stored catalogue of another target is not offered. */
  readonly key: string;
  /** @throws {DefinitionError} for an invalid option */
  open(host: DirectHost): DirectUpstream;
}

/** The parts of a mount that a direct upstream uses. */
export interface DirectHost {
  readonly mount: string;
  readonly clock: Clock;
  readonly log: RuntimeLog;
  readonly settings: DirectSettings;
  /** Longest data of a result, in characters of JSON. */
  readonly maxResultLength: number;
  /** Reads a resource of this server for the caller of a tool. @throws {ToolError} */
  readResource(ctx: Context, uri: string): Promise<ReadBytes>;
  /** The sign-ins of people at upstreams. */
  loadSignIns(): Promise<SignIns>;
}

/** The options of a mount that a direct upstream reads. */
interface DirectSettings {
  readonly only?: readonly string[] | undefined;
  readonly except?: readonly string[] | undefined;
  readonly expose?: Exposure | undefined;
  readonly validate: boolean;
  readonly maxListed: number;
}

export interface DirectUpstream {
  readonly state: string;
  /** Milliseconds until it is listed again. */
  readonly refreshMs: number;
  /**
   * Makes the catalogue.
   *
   * @param changed is called when it should be made again
   * @throws {Error} if it cannot be made
   */
  list(changed: () => void): Promise<UpstreamCatalogue>;
  /** The check of the arguments of a tool. */
  inputOf(tool: string): CompiledSchema;
  /** @param request the tool's member of `requests` in the catalogue that is offered */
  call(tool: string, args: JsonObject, request: JsonObject | undefined, ctx: Context): Promise<CallToolResult>;
  /** The documentation of each tool by its name, once the tools were listed. */
  documented?(): ReadonlyMap<string, () => ToolDocumentation> | undefined;
  close(): Promise<void>;
}

export function isDirect(target: unknown): target is DirectTarget {
  return typeof target === 'object' && target !== null && DIRECT in target;
}
