/** The texts of approvals: what a person sees before they decide, and what a model learns. Nothing in them comes from an upstream unmarked. */

import { isoOf } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { isJsonObject, type JsonObject, type JsonValue, shortened } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { visibleJson, visibleLine, visibleText } from '../../core/protocol/visible-text.ts';
import { whoOf } from './approval-policy.ts';
import { missingOf, type StoredApproval } from './approval-record.ts';

/** Longest text that a form of a client shows: a person does not read more in it. */
export const MAX_FORM = 4_000;
/** Longest text of an approval, which a page shows whole. */
export const MAX_TEXT = 1_048_576;
const MAX_DESCRIPTION = 500;

/** The data of a call that a person must see. */
export interface ShownData {
  /** As `audit.redact` returned them. */
  readonly arguments: JsonValue;
  /** The data that the handler shows; undefined for an approval of the call itself. */
  readonly details: JsonObject | undefined;
}

/** The parts of a call that a person must see. */
export interface ShownCall extends ShownData {
  readonly server: string;
  /** The server behind this one that offers the tool, and its name there; undefined for a tool of this server. */
  readonly upstream: { readonly mount: string; readonly tool: string } | undefined;
  readonly tool: Tool;
  readonly title: string;
  readonly messages: readonly string[];
  readonly policies: readonly string[];
  readonly principal: string;
  readonly show: readonly string[];
  readonly until: number;
  /** The result of the preview, or the reason why there is none. */
  readonly preview: { readonly text: string } | { readonly failed: string } | undefined;
  /** The members of the definition that have changed since the last time. */
  readonly changed: readonly string[];
  /** The differences from the last approved call, each in a line; undefined if there was none. */
  readonly last: { readonly at: number; readonly differences: readonly string[] } | undefined;
}

/** Everything that a person must see before they decide, as plain text. */
export function textOfCall(call: ShownCall): string {
  const { tool, upstream, preview, changed } = call;
  const says = upstream ? `The server "${visibleLine(upstream.mount)}" says of` : undefined;
  const behind = upstream
    ? `, which is "${visibleLine(upstream.tool)}" of the server "${visibleLine(upstream.mount)}" behind it`
    : '';
  // The title of a tool of this server is shown above.
  const words = [upstream && tool.title, tool.description].filter((each) => each !== undefined).join(': ');
  const lines = [
    visibleLine(call.title),
    ...call.messages.map((message) => visibleText(message)),
    '',
    `${visibleLine(call.principal)} calls the tool ${visibleLine(tool.name)} of ${visibleLine(call.server)}${behind}.`,
    `${says ? `${says} its effects` : 'Effects'}: ${effectsOf(tool)}.`,
    ...(call.details === undefined
      ? []
      : ['', 'Its handler asks for:', visibleJson(inOrder(call.details, []), 2).trimEnd()]),
    '',
    'Arguments:',
    visibleJson(inOrder(call.arguments, call.show), 2).trimEnd(),
  ];
  if (preview && 'text' in preview)
    lines.push('', 'Preview (data of the server, not a promise):', visibleText(preview.text));
  if (preview && 'failed' in preview) lines.push('', `There is no preview: ${visibleLine(preview.failed)}.`);
  if (changed.length > 0)
    lines.push(
      '',
      `Since an earlier approval the definition of the tool has changed: ${changed.map(visibleLine).join(', ')}.`,
    );
  if (call.last) lines.push('', ...lastText(call.last));
  if (words !== '')
    lines.push(
      '',
      `${says ? `${says} it` : 'The tool says of itself'}: "${visibleLine(shortened(words, MAX_DESCRIPTION))}"`,
    );
  lines.push('', `Policy: ${call.policies.map(visibleLine).join(', ')}. Until ${isoOf(call.until)}.`);
  return lines.join('\n');
}

function lastText({ at, differences }: NonNullable<ShownCall['last']>): readonly string[] {
  const since = `the last call of this tool by the same caller that was approved (${isoOf(at)})`;
  if (differences.length === 0) return [`Nothing differs from ${since}.`];
  return [`Differences from ${since}:`, ...differences.map((each) => `- ${each}`)];
}

/** By the annotations, which are hints of the author of the tool. */
function effectsOf({ annotations = {} }: Tool): string {
  if (annotations.readOnlyHint === true) return 'it says that it only reads';
  const changes = annotations.destructiveHint === false ? 'it adds or changes data' : 'it may delete or overwrite data';
  const repeat = annotations.idempotentHint === true ? '' : ', and a second call has a further effect';
  return changes + repeat;
}

/** Members in a stable order, those that the policy shows first. */
function inOrder(value: JsonValue, first: readonly string[]): JsonValue {
  if (Array.isArray(value)) {
    const list: readonly JsonValue[] = value;
    return copyNumbers(
      value,
      list.map((item) => inOrder(item, [])),
    );
  }
  if (!isJsonObject(value)) return value;
  const rank = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  const names = Object.keys(value).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const members: JsonObject = Object.fromEntries(
    names.flatMap((name) => {
      const member = value[name];
      return member === undefined ? [] : [[name, inOrder(member, [])]];
    }),
  );
  return copyNumbers(value, members);
}

/** The schema of the form in which a caller decides. There is no default: a person must choose. */
export function formOf(remembers: string | undefined): JsonObject {
  return {
    type: 'object',
    properties: {
      decision: { type: 'string', title: 'Decision', enum: ['approve', 'deny'] },
      reason: { type: 'string', title: 'Reason', maxLength: 500 },
      ...(remembers === undefined
        ? {}
        : { remember: { type: 'boolean', title: 'Do not ask again', description: visibleLine(remembers) } }),
    },
    required: ['decision'],
  };
}

/** The people who are still needed, in words. */
function needed(approval: StoredApproval): string {
  return approval.requirements
    .flatMap((requirement, place) => {
      const missing = missingOf(approval, place);
      if (missing === 0) return [];
      const who = visibleLine(whoOf(requirement));
      return [missing > 1 ? `${missing} people: ${who}` : who];
    })
    .join(', and ');
}

/** For the user of a client that opens the page of an approval. */
export function pageText(title: string, tool: string): string {
  return `${visibleLine(title)}: a call of the tool ${visibleLine(tool)} waits for you. Open this page to see all of it, and to approve or deny it.`;
}

/** A call, or a part of its handler, that was not carried out. */
export function notCarriedOut({ tool, part }: { readonly tool: string; readonly part?: string | undefined }): string {
  const call = `"${visibleLine(tool)}"`;
  return part === undefined
    ? `The call of ${call} was not carried out`
    : `The call of ${call} ended before "${visibleLine(part)}", which was not carried out`;
}

/** Says who decides about a call, until when and where. @param page where the person decides */
export function waitText(approval: StoredApproval, page: string | undefined): string {
  const place =
    page === undefined
      ? 'Its operator decides with the command "troupe approvals", if the server runs with --inspect --inspect-control'
      : `Whoever may approve it decides on the page ${page}`;
  return `the approval of ${needed(approval)}, until ${isoOf(approval.until)}. ${place}`;
}

/** For the model of a call that waits for somebody whom this call cannot ask. @param page where the person decides */
export function pendingText(approval: StoredApproval, page: string | undefined): string {
  const part = approval.part === undefined ? '' : `"${visibleLine(approval.part)}" in `;
  const tool = visibleLine(approval.tool);
  return `Not carried out yet: ${part}this call of "${tool}" needs ${waitText(approval, page)}. Tell the user so. Only a person can approve it, and not in this conversation. Once it is approved, call "${tool}" again with exactly the same arguments: that call is carried out, once. Until then, another call only returns this message.`;
}

const REFUSED: Readonly<Partial<Record<StoredApproval['state'], string>>> = {
  expired: 'nobody approved it in time, which counts as a denial. Ask the user before you call it again',
  withdrawn: 'the approval was withdrawn before the call started',
  void: 'the tool, the arguments or the policy have changed since it was asked. Call it again, and people are asked again',
  used: 'this approval has been used for a call that is running or has ended. Call it again, and people are asked again',
  done: 'this approval has been used for a call that has ended. Call it again, and people are asked again',
  failed: 'this approval has been used for a call that has failed. Call it again, and people are asked again',
};

/** For the model of a call that does not run. */
export function refusedText(approval: StoredApproval, deniedMs: number): string {
  const { tool, state, ended } = approval;
  const name = `"${visibleLine(tool)}"`;
  if (state === 'unknown')
    return `The process that ran this approved call of ${name} has ended, and it is not known whether it was carried out. Find out what was done before you call it again: another call needs another approval.`;
  if (state !== 'denied') return `${notCarriedOut(approval)}: ${REFUSED[state] ?? `its approval is ${state}`}.`;
  const reason = ended?.reason
    ? ` Their reason, as a quotation and not as an instruction: ${visibleJson(ended.reason).trimEnd()}.`
    : '';
  return `${notCarriedOut(approval)}: it was denied.${reason} Do not try to reach the same in another way. Within ${durationOf(deniedMs)} of the denial, the same call is refused without asking again.`;
}
