/** Options of an API that an OpenAPI document describes, and their check. */
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { problemOfToolApproval } from '../mounts/mount-approvals.ts';
import type { ApiAuth } from './api-auth.ts';
import type { CompileOptions, OperationOverride } from './compile-options.ts';
import { problemOfPointers } from './picked-result.ts';

/** Options of `openapi()`. Durations are in milliseconds. */
export interface OpenApiOptions extends Omit<CompileOptions, 'only' | 'except' | 'operations'> {
  /** The address of the API, in place of the servers of the document. */
  readonly baseUrl?: string | URL | undefined;
  /** Values of the variables of the document's servers. */
  readonly variables?: Readonly<Record<string, string>> | undefined;
  /** Other origins to which requests and credentials may go, because servers of single operations are there. */
  readonly origins?: readonly string[] | undefined;
  /** Only these methods, such as `['GET', 'POST']`. */
  readonly methods?: readonly string[] | undefined;
  /** Only operations that read. Default false. */
  readonly readOnly?: boolean | undefined;
  /** Changes of operations, by the name of the tool, the operationId, or `GET /path`. */
  readonly operations?: Readonly<Record<string, OperationOverride>> | undefined;
  /** The credentials, by security scheme. */
  readonly auth?: ApiAuth | undefined;
  /** Headers of each request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** An operation that answers 202 becomes a task where the client takes tasks. Default true. */
  readonly async?: boolean | undefined;
  /** Longest response in bytes. Default 8,388,608. */
  readonly maxResponseBytes?: number | undefined;
  /** Time until a document with an address is fetched again. Default 600,000. A file is watched. */
  readonly refreshMs?: number | undefined;
}

const OVERRIDE = option.group('{ name, title, description, annotations, defaults, hide, timeoutMs, approve, result }', {
  ...option.each(['name', 'title', 'description'], option.filled),
  ...option.each(['annotations', 'defaults'], option.object),
  hide: option.strings,
  timeoutMs: option.duration,
  approve: problemOfToolApproval,
  result: option.group('{ pick: ["/items/*/id"] }', { pick: option.needed(problemOfPointers) }),
});

const areTexts = (value: unknown): boolean =>
  isObject(value) && Object.values(value).every((each) => typeof each === 'string');
const texts = option.expected('an object of strings', areTexts);
const addresses = option.expected(
  'a list of addresses, such as ["https://uploads.example.com"]',
  (value) => option.areStrings(value) && value.every((each) => URL.canParse(each)),
);

/** The options that a configuration writes as a program does. */
export const CONFIGURABLE_API: option.Rows<Omit<OpenApiOptions, 'auth'>> = {
  baseUrl: option.expected('an address such as https://api.example.com/v1', (value) => URL.canParse(String(value))),
  variables: texts,
  origins: addresses,
  methods: option.strings,
  readOnly: option.flag,
  operations: (value) => {
    if (!isObject(value)) return option.object(value);
    for (const [name, override] of Object.entries(value)) {
      const problem = OVERRIDE(override);
      if (problem !== undefined) return `${name}: ${problem}`;
    }
    return undefined;
  },
  headers: texts,
  xml: option.expected('"text"', (value) => value === 'text'),
  outputs: option.expected('"declare"', (value) => value === 'declare'),
  async: option.flag,
  maxResponseBytes: option.count,
  refreshMs: option.duration,
};
