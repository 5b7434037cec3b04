/** The result of the tool that runs scripts, as its model reads it. */
import { durationOf } from '../../../core/kernel/duration.ts';
import { isJsonObject, isObject, type JsonValue, shortened } from '../../../core/protocol/json.ts';
import type { CallToolResult, ContentBlock } from '../../../core/protocol/types.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { ScriptEnd, ScriptFault } from '../sandbox/script.ts';

/** Longest text of all logs of a run: the first and the last of it. */
const MAX_LOGS = 4_000;
/** Names of calls in one result. */
const MAX_CALLS = 40;
/** Blocks in one result. */
const MAX_BLOCKS = 16;
/** Longest list of effects that an error names. */
const MAX_EFFECTS = 20;

/** One call of a run that has ended. */
export interface EndedCall {
  readonly number: number;
  readonly name: string;
  readonly effect: boolean;
  readonly fault: ScriptFault | undefined;
}

export interface RunReport {
  readonly calls: readonly EndedCall[];
  readonly logs: readonly string[];
  /** The calls that had no result when the script ended. */
  readonly unfinished: readonly { readonly name: string; readonly effect: boolean }[];
  /** Longest result, in characters. */
  readonly maxLength: number;
  /** The resource that has the whole of a longer one; absent if there is no room for it. */
  readonly resource?: WholeResult | undefined;
}

/** The resource with the whole result of a run. */
export interface WholeResult {
  readonly uri: string;
  /** Milliseconds for which it can be read. */
  readonly ttlMs: number;
}

/** The end of a run: that of its script, or its cancellation. */
export type RunEnd = ScriptEnd | { readonly type: 'cancelled'; readonly message: string };

/** The result of a run. */
export interface RunResult {
  readonly text: string;
  readonly isError: boolean;
  /** The blocks that the script has returned, and the link to its whole result. */
  readonly blocks?: readonly ContentBlock[] | undefined;
  /** JSON: the result without a cut, if the text has only its beginning. */
  readonly whole?: string | undefined;
}

/** Finds the blocks whose handles a script has returned, in this order. */
export function returnedBlocks(end: RunEnd, blocks: ReadonlyMap<string, ContentBlock>): readonly ContentBlock[] {
  if (end.type !== 'returned' || end.value === undefined || blocks.size === 0) return [];
  const found = new Set<ContentBlock>();
  const look = (value: JsonValue | undefined): void => {
    const block = typeof value === 'string' ? blocks.get(value) : undefined;
    if (block && found.size < MAX_BLOCKS) found.add(block);
    if (isList(value)) for (const each of value) look(each);
    else if (isJsonObject(value)) for (const each of Object.values(value)) look(each);
  };
  look(fromText(end.value, 'the result of a script'));
  return [...found];
}

/** The characters of a result that is too long to be sent whole; 0 for a shorter one. */
export function lengthOfWhole(end: RunEnd, maxLength: number): number {
  const length = end.type === 'returned' ? (end.value?.length ?? 0) : 0;
  return length > maxLength ? length : 0;
}

/** @param blocks those that the script has returned */
export function resultOfEnd(end: RunEnd, report: RunReport, blocks: readonly ContentBlock[]): RunResult {
  const { resource } = report;
  if (end.type !== 'returned') return { text: textOfFailure(end, report), isError: true };
  const text = textOfReturn(end.value, report);
  if (!resource || end.value === undefined) return { text, isError: false, ...(blocks.length > 0 ? { blocks } : {}) };
  const size = Buffer.byteLength(end.value);
  const link: ContentBlock = {
    ...{ uri: resource.uri, name: 'result of the script', mimeType: 'application/json', size },
    type: 'resource_link',
  };
  return { text, isError: false, blocks: [...blocks, link], whole: end.value };
}

function textOfFailure(end: Exclude<RunEnd, { type: 'returned' }>, report: RunReport): string {
  const lines = [messageOfEnd(end)];
  if ('excerpt' in end && end.excerpt !== undefined) lines.push(end.excerpt);
  lines.push(...effectsOf(report));
  const more = { ...logsOf(report), ...callsOf(report) };
  if (Object.keys(more).length > 0) lines.push(toText(more));
  return lines.join('\n');
}

function messageOfEnd(end: Exclude<RunEnd, { type: 'returned' }>): string {
  const place = 'line' in end && end.line !== undefined ? ` (line ${end.line}${columnOf(end.column)})` : '';
  switch (end.type) {
    case 'threw': {
      const tool = end.fault?.tool;
      const of = tool === undefined ? '' : `. The call of ${tool} failed; catch a ToolError to continue without it.`;
      return `${end.name}: ${end.message}${place}${of}`;
    }
    case 'invalid':
      return `Invalid JavaScript: ${end.message}${place}. Nothing of the script has run.`;
    case 'stopped':
      return `The script was stopped: ${end.message}${place}.`;
    case 'cancelled':
      return `The script was cancelled: ${end.message}.`;
  }
}

function columnOf(column: number | undefined): string {
  return column === undefined ? '' : `, column ${column}`;
}

/** Lists the effects of the calls, so that a second script does not repeat them. */
function effectsOf({ calls, unfinished }: RunReport): readonly string[] {
  const done = calls.filter(({ effect, fault }) => effect && (fault === undefined || fault.carriedOut === true));
  const unknown = [
    ...calls.filter(({ effect, fault }) => effect && fault !== undefined && isUnknown(fault)),
    ...unfinished.filter(({ effect }) => effect),
  ];
  const lines: string[] = [];
  if (done.length > 0)
    lines.push(`Carried out before it ended, so do not repeat it: ${named(done.map(({ name }) => name))}.`);
  if (unknown.length > 0)
    lines.push(
      `It is not known whether these were carried out; find out before you call them again: ${named(unknown.map(({ name }) => name))}.`,
    );
  if (lines.length === 0) lines.push('None of its calls has changed anything.');
  return lines;
}

/** A tool that fails with an error of its own may have done a part. */
function isUnknown({ carriedOut }: ScriptFault): boolean {
  return carriedOut === 'unknown' || carriedOut === undefined;
}

function named(names: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  const listed = [...counts].slice(0, MAX_EFFECTS).map(([name, count]) => (count === 1 ? name : `${name} ×${count}`));
  const more = counts.size - listed.length;
  return more > 0 ? `${listed.join(', ')} and ${more} more` : listed.join(', ');
}

function textOfReturn(value: string | undefined, report: RunReport): string {
  const { maxLength, unfinished, resource } = report;
  const more = {
    ...logsOf(report),
    ...callsOf(report),
    ...(unfinished.length === 0
      ? {}
      : {
          unfinished: `${named(unfinished.map(({ name }) => name))}: the script did not await ${unfinished.length === 1 ? 'this call, which was' : 'these calls, which were'} cancelled`,
        }),
  };
  if (value === undefined)
    return toText({ result: null, note: 'The script returned nothing. Use return to get a value.', ...more });
  if (value.length <= maxLength)
    return `{"result":${value}${Object.keys(more).length === 0 ? '}' : `,${toText(more).slice(1)}`}`;
  const json = fromText(value, 'the result of a script');
  const shape = shapeOf(json, 3);
  return toText({
    result: shortened(value, maxLength),
    cut: `The result has ${value.length} characters and was cut after ${maxLength}. Its shape is ${shape}.${resource ? ` For ${durationOf(resource.ttlMs)} the whole is the resource ${resource.uri}: a script reads it with await resource("${resource.uri}").` : ''} Return less: filter, take the first rows, pick fields, or compute the answer in the script.`,
    ...more,
  });
}

/** The shape of a value with the counts of its lists, such as `{ rows: 1200 × { id: number } }`. */
function shapeOf(value: JsonValue, depth: number): string {
  if (Array.isArray(value)) {
    const [first] = value;
    return first === undefined ? '[]' : `${value.length} × ${depth === 0 ? '…' : shapeOf(first, depth - 1)}`;
  }
  if (isJsonObject(value)) {
    const members = Object.entries(value);
    if (depth === 0) return `{ ${members.length} members }`;
    const shown = members
      .slice(0, 12)
      .map(([name, member]) => `${shortened(name, 60)}: ${shapeOf(member ?? null, depth - 1)}`);
    return `{ ${[...shown, ...(members.length > 12 ? [`… ${members.length - 12} more`] : [])].join(', ')} }`;
  }
  return typeof value === 'string' && value.length > 100 ? `string of ${value.length}` : typeof value;
}

function logsOf({ logs }: RunReport): { readonly logs?: string } {
  if (logs.length === 0) return {};
  const all = logs.join('\n');
  if (all.length <= MAX_LOGS) return { logs: all };
  const half = MAX_LOGS / 2;
  return { logs: `${all.slice(0, half)}\n… ${all.length - MAX_LOGS} characters left out …\n${all.slice(-half)}` };
}

function callsOf({ calls }: RunReport): { readonly calls?: readonly string[] } {
  if (calls.length === 0) return {};
  const byName = new Map<string, { count: number; failures: number }>();
  for (const { name, fault } of calls) {
    const known = byName.get(name) ?? { count: 0, failures: 0 };
    known.count += 1;
    if (fault) known.failures += 1;
    byName.set(name, known);
  }
  const lines = [...byName]
    .slice(0, MAX_CALLS)
    .map(([name, { count, failures }]) => `${name} ×${count}${failures === 0 ? '' : `, ${failures} failed`}`);
  if (byName.size > MAX_CALLS) lines.push(`… ${byName.size - MAX_CALLS} more`);
  return { calls: lines };
}

/** Milliseconds in whole hours or minutes, at least one. */
function rounded(ms: number): number {
  const unit = ms >= 7_200_000 ? 3_600_000 : 60_000;
  return Math.max(1, Math.floor(ms / unit)) * unit;
}

/** The result of a call whose run continues without it. */
export function pausedResult(
  run: string,
  waits: readonly string[],
  tool: string,
  leftMs: number | undefined,
): CallToolResult {
  const until = leftMs === undefined ? '' : ` It is kept for ${durationOf(rounded(leftMs))}.`;
  const text = `paused: run ${run}, ${waits.join('; ') || 'its calls are still running'}. Nothing has failed.${until} Call ${tool} with { "resume": "${run}" } to get its result; do not run the script again.`;
  return { content: [{ type: 'text', text }] };
}

/** The result of a call whose script an earlier call has begun, and whose run no request waits for. */
export function lostResult(
  { id, state }: { readonly id: string; readonly state: string },
  tool: string,
): CallToolResult {
  const text = `paused: run ${id}, which an earlier call with the same script has begun (${state}), and which no request waits for. Nothing was begun again. Call ${tool} with { "resume": "${id}" } to continue it and to get its result. To run the script a second time all the same, change it.`;
  return { content: [{ type: 'text', text }] };
}

export function resultOf({ text, isError, blocks = [] }: RunResult): CallToolResult {
  return { content: [{ type: 'text', text }, ...blocks], ...(isError ? { isError: true } : {}) };
}

/** A member of a list of arguments. @returns undefined if the text is no list */
export function argumentsIn(text: string): readonly JsonValue[] | undefined {
  const value: unknown = fromText(text, 'the arguments of a call');
  return isList(value) ? value : undefined;
}

function isList(value: unknown): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** True for a value of the arguments that is an object. */
export function isArguments(value: unknown): value is Readonly<Record<string, JsonValue>> {
  return isObject(value);
}
