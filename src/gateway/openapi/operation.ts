/** Operations of an OpenAPI document, compiled: the tools that they become, and how their requests are made. */
import type { Context } from '../../core/execution/context.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { CallToolResult, Tool } from '../../core/protocol/types.ts';
import type { ToolDocumentation } from '../mounts/tool-finder.ts';
import type { MountedToolPolicy } from '../mounts/upstream-catalogue.ts';

/** One operation. */
export interface ApiOperation {
  /** The tool, as clients list it: its `inputSchema` has no `$ref`, and is cut where it is recursive or too long. */
  readonly tool: Tool & JsonObject;
  /** The exact schema of the arguments, with `$defs`. Arguments are checked against it before they reach the caller. */
  readonly checked: JsonObject;
  /** The values of arguments that a call does not have; those of hidden parameters among them. */
  readonly defaults: JsonObject;
  readonly request: OperationRequest;
  /** The options of the tool beside those of its mount. */
  readonly policy?: MountedToolPolicy | undefined;
  /** JSON Pointers to the members of a response that are passed on. Default: all. */
  readonly pick?: readonly string[] | undefined;
}

/** The request of an operation. It has no secret, and is a part of the pin of the tool. */
export interface OperationRequest {
  /** In capitals, such as `GET`. */
  readonly method: string;
  /** The template, such as `/pets/{petId}`. */
  readonly path: string;
  /** An absolute URL without a slash at its end, a query or a fragment, such as `https://api.example.com/v1`. */
  readonly base: string;
  readonly parameters: readonly OperationParameter[];
  readonly body?: OperationBody;
  /** The value of the header `Accept`. */
  readonly accept: string;
  /** Alternatives of combinations: `[]` and `[[]]` mean that nothing is needed. Each scheme is one of the document. */
  readonly security: readonly (readonly SecurityRequirement[])[];
  /** The name of the header parameter that takes the idempotency key of the call. It is no argument. */
  readonly idempotencyHeader?: string;
  readonly responses: OperationResponses;
}

export type ParameterStyle = 'simple' | 'label' | 'matrix' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject';

/** A parameter of a request (OpenAPI 3.1, "Parameter Object"). */
export interface OperationParameter {
  /** The name of the argument. It differs from `name` if two parameters have one name. */
  readonly argument: string;
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly style: ParameterStyle;
  readonly explode: boolean;
  /** The value keeps the reserved characters of RFC 3986, except in a path. */
  readonly allowReserved: boolean;
  /** The value is sent as JSON text (`content: application/json`). */
  readonly json: boolean;
  readonly required: boolean;
}

/** The body of a request: the argument `body`. */
export interface OperationBody {
  readonly required: boolean;
  /** The media type to send, such as `application/merge-patch+json`. */
  readonly type: string;
  readonly kind: 'json' | 'form' | 'multipart' | 'text' | 'binary';
  /** The encoding of members of a form or of parts, by their names (OpenAPI 3.1, "Encoding Object"). */
  readonly encoding: Readonly<Record<string, BodyEncoding>>;
  /** The members of a multipart body that are files, or lists of files: `{ data, type?, name? }`. A body of the kind `binary` is such a file itself. */
  readonly files: readonly string[];
}

export interface BodyEncoding {
  readonly contentType?: string;
  readonly style?: ParameterStyle;
  readonly explode?: boolean;
  readonly allowReserved?: boolean;
}

export interface SecurityRequirement {
  readonly scheme: string;
  readonly scopes: readonly string[];
}

/** The successful responses that an operation declares. Servers may answer otherwise. */
export interface OperationResponses {
  /** The media types of all 2xx responses. */
  readonly media: readonly string[];
  /** It declares 202: the work may continue after the response. */
  readonly accepted: boolean;
}

/** A security scheme (OpenAPI 3.1, "Security Scheme Object"; those of Swagger 2 are translated). */
export type SecurityScheme =
  | { readonly type: 'apiKey'; readonly in: 'header' | 'query' | 'cookie'; readonly name: string }
  /** `scheme` in lower case, such as `basic` and `bearer`. */
  | { readonly type: 'http'; readonly scheme: string }
  | { readonly type: 'oauth2'; readonly flows: Readonly<Partial<Record<OAuthFlowName, OAuthFlow>>> }
  | { readonly type: 'openIdConnect'; readonly url: string }
  | { readonly type: 'mutualTLS' }
  /** Of another type, which no credential fits. `what` names a known one. */
  | { readonly type: 'other'; readonly what?: string };

export type OAuthFlowName = 'authorizationCode' | 'clientCredentials' | 'implicit' | 'password' | 'deviceAuthorization';

export interface OAuthFlow {
  readonly authorizationUrl?: string;
  readonly tokenUrl?: string;
  readonly refreshUrl?: string;
  readonly scopes: readonly string[];
}

/** A document that was read, and its operations. */
export interface CompiledDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string };
  readonly operations: readonly ApiOperation[];
  readonly securitySchemes: Readonly<Record<string, SecurityScheme>>;
  /** The origins that the operator names: only their hosts may have private addresses. */
  readonly trusted: readonly string[];
  /** One sentence for each part of the document that has no effect. */
  readonly warnings: readonly string[];
  /** The operations that are not offered although nothing filters them, each with the reason. */
  readonly skipped: readonly { readonly operation: string; readonly reason: string }[];
  /** The documentation of each tool, by its name: the schemas of results are compiled when they are asked for. */
  readonly documented: ReadonlyMap<string, () => ToolDocumentation>;
  /** The number of its webhooks and callbacks, which are not offered. */
  readonly webhooks: number;
}

/** Makes the requests of one document. `openOperationCaller` in `operation-caller.ts` makes one for each mount. */
export interface OperationCaller {
  /**
   * Makes one request, and reads its response.
   *
   * @param args fit `operation.checked`, with `operation.defaults`
   * @param ctx of the caller: its questions, tasks, steps and cancellation are those of the client
   * @returns a result with `isError` for a response of 4xx and 5xx
   * @throws {ToolError} if the request was not made, or if it is not known whether it was carried out
   */
  call(document: CompiledDocument, operation: ApiOperation, args: JsonObject, ctx: Context): Promise<CallToolResult>;
  close(): Promise<void>;
}
