/** Options of the compilation of a document. */
import type { JsonObject } from '../../core/protocol/json.ts';
import type { ToolApproval } from '../mounts/mount-approvals.ts';

export interface ApiServerOptions {
  readonly baseUrl?: string | URL | undefined;
  readonly variables?: Readonly<Record<string, string>> | undefined;
  readonly origins?: readonly string[] | undefined;
}

/** Changes of one operation. */
export interface OperationOverride {
  readonly name?: string | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly annotations?: JsonObject | undefined;
  /** Values of arguments that a call does not have. */
  readonly defaults?: JsonObject | undefined;
  /** Deadline of a call in milliseconds. Default: that of the mount. */
  readonly timeoutMs?: number | undefined;
  /** The calls that people must approve: `true` (by their callers), or an entry as in `approve` of a mount. */
  readonly approve?: ToolApproval | undefined;
  /** `pick`: the members of a response that are passed on, as JSON Pointers; `*` is each element or member. */
  readonly result?: { readonly pick: readonly string[] } | undefined;
  /** Arguments that clients do not see. They have the value in `defaults`, or none. */
  readonly hide?: readonly string[] | undefined;
}

export interface CompileOptions extends ApiServerOptions {
  /** Names, `GET /path/*` and `tag:name`; `*` matches any text. */
  readonly only?: readonly string[] | undefined;
  readonly except?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  /** Only operations that change nothing: GET and QUERY, and those whose `annotations` say so. */
  readonly readOnly?: boolean | undefined;
  /** By the name of the tool, the operationId, or `GET /path`. */
  readonly operations?: Readonly<Record<string, OperationOverride>> | undefined;
  /** Headers of each request: parameters of these names are not shown. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Bodies of XML are text that the model writes. Default: operations that take only XML are left out. */
  readonly xml?: 'text' | undefined;
  /** Tools have the schemas of their results, which are not checked. */
  readonly outputs?: 'declare' | undefined;
}
