/** Makes of the outcome of a call what its script gets: a value, or the fault that it throws. */
import type { Outcome } from '../../../core/messages/results.ts';
import { ErrorCode } from '../../../core/protocol/errors.ts';
import { isObject, type JsonValue, messageOf, shortened } from '../../../core/protocol/json.ts';
import { META } from '../../../core/protocol/meta.ts';
import type { CallToolResult, ContentBlock, ReadResourceResult } from '../../../core/protocol/types.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { ScriptFault } from '../sandbox/script.ts';

/** The longest value of one call that a script gets, in characters of JSON. */
const MAX_VALUE = 1024 * 1024;
/** The longest message of a fault, in characters. */
const MAX_MESSAGE = 4_000;

/** The codes of errors that precede the handler of a call. */
const NOT_RUN: ReadonlySet<number> = new Set([
  ErrorCode.InvalidRequest,
  ErrorCode.MethodNotFound,
  ErrorCode.InvalidParams,
  ErrorCode.ResourceNotFound,
  ErrorCode.MissingRequiredClientCapability,
  ErrorCode.Overloaded,
  ErrorCode.Forbidden,
  ErrorCode.UpstreamUnavailable,
]);

/** Content blocks by the handles with which a script names them. */
export type ReturnableBlocks = Readonly<Record<string, ContentBlock>>;

export type CallValue =
  | {
      /** JSON, or an empty text for undefined. */
      readonly value: string;
      /** The same before it was written; undefined if its types say nothing of the tool. */
      readonly json: JsonValue | undefined;
      /** The images and other blocks that the script can return, by their handles in the value. */
      readonly blocks?: ReturnableBlocks | undefined;
    }
  | { readonly error: ScriptFault };

/** A call as its script and its errors name it. */
export interface NamedCall {
  /** `group.function`. */
  readonly name: string;
  /** The number of the call, which names its blocks. */
  readonly number: number;
  /** The script wants the whole result. */
  readonly raw: boolean;
  /** The declaration of its parameters. */
  readonly declared: string | undefined;
}

export function valueOfOutcome(call: NamedCall, outcome: Outcome): CallValue {
  if (!outcome.ok) {
    const { code, message, data } = outcome.error;
    const carriedOut = NOT_RUN.has(code) ? false : 'unknown';
    const retry = isObject(data) ? data.retryAfterMs : undefined;
    return fault(call.name, {
      ...{ message, code, carriedOut },
      ...(data === undefined ? {} : { data: textOf(data) }),
      ...(typeof retry === 'number' ? { retryAfterMs: retry } : {}),
    });
  }
  const { result } = outcome;
  if (result.kind === 'call') return valueOfResult(call, result.result);
  if (result.kind === 'read') return valueOfResource(call, result.result);
  return fault(call.name, { message: `expected a result of ${call.name}, got "${result.kind}"` });
}

function valueOfResult(call: NamedCall, result: CallToolResult): CallValue {
  if (call.raw) return written(call, textOf(result), undefined);
  if (result.isError === true) return faultOf(call, result);
  const { structuredContent, content } = result;
  if (structuredContent !== undefined) return sized(call, structuredContent);
  const [first, ...others] = content;
  if (first === undefined) return { value: '', json: undefined };
  if (first.type === 'text' && others.length === 0) return sized(call, parsed(first.text));
  const kept = new KeptBlocks(call.number);
  const values = content.map((block) => (block.type === 'text' ? block.text : kept.opaque(block, block)));
  return kept.with(sized(call, one(values)));
}

/** A list of one is its member. */
function one(values: readonly JsonValue[]): JsonValue {
  const [first = null, ...others] = values;
  return others.length === 0 ? first : values;
}

/** The blocks of one result that a script cannot read. It can return them. */
class KeptBlocks {
  readonly #call: number;
  readonly #blocks: Record<string, ContentBlock> = {};

  constructor(call: number) {
    this.#call = call;
  }

  /** The value in the place of a block: its type, its size and its handle. @param members those of the block, or of its resource */
  opaque(block: ContentBlock, members: object): JsonValue {
    const { type, mimeType, uri, data, blob }: Readonly<Record<string, unknown>> = { ...members };
    const bytes = [data, blob].find((each) => typeof each === 'string');
    const handle = `block-${this.#call}-${Object.keys(this.#blocks).length + 1}`;
    const isKept = textOf(block).length <= MAX_VALUE;
    if (isKept) this.#blocks[handle] = block;
    return {
      type: typeof type === 'string' ? type : 'resource',
      ...(typeof mimeType === 'string' ? { mimeType } : {}),
      ...(typeof uri === 'string' ? { uri } : {}),
      ...(typeof bytes === 'string' ? { bytes: Math.floor((bytes.length * 3) / 4) } : {}),
      ...(isKept ? { handle } : {}),
    };
  }

  with(value: CallValue): CallValue {
    return 'error' in value || Object.keys(this.#blocks).length === 0 ? value : { ...value, blocks: this.#blocks };
  }
}

function valueOfResource(call: NamedCall, { contents }: ReadResourceResult): CallValue {
  const kept = new KeptBlocks(call.number);
  const values = contents.map((each) =>
    'text' in each && typeof each.text === 'string'
      ? parsed(each.text)
      : kept.opaque({ type: 'resource', resource: each }, each),
  );
  return kept.with(sized(call, one(values)));
}

/** A text is data if it is an object or a list of JSON. */
function parsed(text: string): JsonValue {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return fromText(text, 'the result of a tool');
  } catch {
    return text;
  }
}

function sized(call: NamedCall, json: JsonValue): CallValue {
  return written(call, textOf(json), json);
}

function written(call: NamedCall, text: string, json: JsonValue | undefined): CallValue {
  if (text.length <= MAX_VALUE) return { value: text, json };
  return fault(call.name, {
    message: `${call.name} was carried out, but its result has ${text.length} characters, and a script gets at most ${MAX_VALUE} of one call. Ask it for less: filter, take a page, or name fewer fields`,
    carriedOut: true,
  });
}

/** A result that is an error throws. */
function faultOf(call: NamedCall, result: CallToolResult): CallValue {
  const { content, structuredContent, _meta: meta } = result;
  const text = content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');
  const said = text === '' ? `${call.name} failed without a message` : text;
  const isArguments = text.startsWith('Invalid arguments for tool ');
  const declared = isArguments && call.declared !== undefined ? `\n${call.declared}` : '';
  const { carriedOut, retryAfterMs, code } = factsIn(meta);
  return fault(call.name, {
    message: `${shortened(said, MAX_MESSAGE)}${declared}`,
    ...(code === undefined ? {} : { code }),
    ...(structuredContent === undefined ? {} : { data: shortened(textOf(structuredContent), MAX_VALUE) }),
    ...(isArguments ? { carriedOut: false } : carriedOut === undefined ? {} : { carriedOut }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function factsIn(meta: unknown): Pick<ScriptFault, 'carriedOut' | 'retryAfterMs' | 'code'> {
  const given = isObject(meta) ? meta : {};
  const failure = given[META.upstreamFailure];
  const approval = given[META.approval];
  const http = given[META.http];
  const retry = given[META.retryAfterMs];
  const said = isObject(failure) ? failure.carriedOut : undefined;
  const state = isObject(approval) ? approval.state : undefined;
  const notRun = said === 'no' || (state !== undefined && state !== 'unknown') || typeof retry === 'number';
  const unknown = said === 'unknown' || state === 'unknown';
  const status = isObject(http) ? http.status : undefined;
  return {
    ...(unknown ? { carriedOut: 'unknown' as const } : notRun ? { carriedOut: false } : {}),
    ...(typeof retry === 'number' ? { retryAfterMs: retry } : {}),
    ...(typeof status === 'number' ? { code: status } : state === 'denied' ? { code: 'denied' } : {}),
  };
}

function fault(tool: string, { message, ...more }: ScriptFault): CallValue {
  return { error: { message: shortened(message, 2 * MAX_MESSAGE), tool, ...more } };
}

function textOf(value: JsonValue | object): string {
  try {
    return toText(value);
  } catch (error) {
    return toText(`(no JSON: ${messageOf(error)})`);
  }
}
