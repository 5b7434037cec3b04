/** Validates the commands of viewers. */
import { describe, isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { SUPPORTED_REVISIONS } from '../../core/protocol/revisions.ts';
import { isLogLevel, LOG_LEVELS } from '../../core/protocol/types.ts';
import { parseTemplate } from '../../core/protocol/uri-template.ts';
import type {
  Answerable,
  ApprovalControl,
  CallerOptions,
  CallRequest,
  Control,
  QuestionAnswer,
  ViewMethod,
} from '../calls/call-messages.ts';
import { type AnyEvent, InputError, readViewerEvent } from '../http/viewer-input.ts';

/** A valid command. */
export type Command =
  | Exclude<Control, { readonly action: 'send' }>
  | { readonly action: 'send'; readonly actor: string; readonly event: AnyEvent };

type Members = Readonly<Record<string, unknown>>;

/** Longest principal, and longest reason of a decision. */
const MAX_PRINCIPAL = 200;
const MAX_REASON = 500;
const ANSWERABLE: readonly Answerable[] = ['form', 'url', 'sampling', 'roots'];
const ACTIONS = [
  ...['send', 'call', 'close', 'start', 'again', 'cancel'],
  ...[
    'answer',
    'complete',
    'watch',
    'unwatch',
    'view',
    'approve',
    'deny',
    'revoke',
    'redeliver',
    'emit',
    'run',
    'forget',
  ],
];
const VIEW_METHODS: readonly ViewMethod[] = ['tools/list', 'tools/call', 'resources/read', 'resources/list'];

/** @throws {InputError} for an invalid command */
export function readCommand(given: unknown): Command {
  if (!isObject(given)) throw expected('expected an object with an action', given);
  const { action } = given;
  switch (action) {
    case 'send':
      return { action, actor: text(given, 'actor', 'an address'), event: readViewerEvent(given.event) };
    case 'call':
      return { action, tool: text(given, 'tool', "a tool's name"), arguments: members(given, 'arguments') };
    case 'close':
      return { action, connection: text(given, 'connection', "a connection's name") };
    case 'start':
      return { action, request: readRequest(given.request), caller: readCaller(given.caller) };
    case 'again':
    case 'cancel':
      return { action, call: number(given, 'call') };
    case 'answer':
      return { action, question: number(given, 'question'), answer: readAnswer(given.answer) };
    case 'complete': {
      const reference = isObject(given.reference) ? given.reference : {};
      const argument = isObject(given.argument) ? given.argument : {};
      return {
        action,
        reference:
          typeof reference.prompt === 'string'
            ? { prompt: reference.prompt }
            : { resource: text(reference, 'resource', 'a URI template') },
        argument: { name: text(argument, 'name', "an argument's name"), value: text(argument, 'value', 'a text') },
        known: texts(given, 'known'),
        caller: readCaller(given.caller),
      };
    }
    case 'watch':
      return { action, uri: text(given, 'uri', 'a URI'), caller: readCaller(given.caller) };
    case 'unwatch':
      return { action, uri: text(given, 'uri', 'a URI') };
    case 'view': {
      const method = VIEW_METHODS.find((known) => known === given.method);
      if (method === undefined) throw expected(`method: expected one of ${VIEW_METHODS.join(', ')}`, given.method);
      return { action, method, params: members(given, 'params'), caller: { ...readCaller(given.caller), views: true } };
    }
    case 'approve':
      return { action, remember: given.remember === true, ...readDecision(given) };
    case 'deny':
    case 'revoke':
      return { action, ...readDecision(given) };
    case 'redeliver':
      return { action, ref: text(given, 'ref', 'the ref of a delivery') };
    case 'emit':
      return { action, event: text(given, 'event', 'the name of an event type'), data: members(given, 'data') };
    case 'run': {
      const schedule = text(given, 'schedule', 'the name of a schedule');
      if (given.machine === undefined) return { action, schedule };
      const machine = text(given, 'machine', 'the name of a machine');
      return { action, schedule, machine, instance: text(given, 'instance', 'the key or the handle of an instance') };
    }
    case 'forget':
      return { action };
    default:
      throw expected(`action: expected one of ${ACTIONS.join(', ')}`, action);
  }
}

function readDecision(given: Members): Pick<ApprovalControl, 'approval' | 'person' | 'reason'> {
  const { reason } = given;
  const person = text(given, 'person', 'the name of the person who decides').trim();
  if (person === '' || person.length > MAX_PRINCIPAL)
    throw expected(`person: expected 1 to ${MAX_PRINCIPAL} characters`, given.person);
  if (reason !== undefined && (typeof reason !== 'string' || reason.length > MAX_REASON))
    throw expected(`reason: expected a text of at most ${MAX_REASON} characters`, reason);
  return {
    ...{ approval: text(given, 'approval', 'the id of an approval'), person },
    ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
  };
}

function readRequest(given: unknown): CallRequest {
  if (!isObject(given)) throw expected('request: expected an object with a kind', given);
  const { kind, task } = given;
  switch (kind) {
    case 'tool':
      return {
        kind,
        name: text(given, 'name', "a tool's name"),
        arguments: members(given, 'arguments'),
        ...(task === true ? { task } : {}),
      };
    case 'resource':
      return { kind, uri: text(given, 'uri', 'a URI') };
    case 'template': {
      const template = text(given, 'template', 'a URI template');
      const variables = texts(given, 'variables');
      try {
        parseTemplate(template).expand(variables);
      } catch (error) {
        throw new InputError(400, error instanceof Error ? error.message : String(error));
      }
      return { kind, template, variables };
    }
    case 'prompt':
      return { kind, name: text(given, 'name', "a prompt's name"), arguments: texts(given, 'arguments') };
    case 'request':
      return { kind, method: text(given, 'method', 'a method'), params: members(given, 'params') };
    default:
      throw expected('request.kind: expected "tool", "resource", "template", "prompt" or "request"', kind);
  }
}

function readCaller(given: unknown): CallerOptions {
  const { revision, principal, answers, logLevel } = isObject(given) ? given : {};
  if (revision !== undefined && !SUPPORTED_REVISIONS.some((known) => known === revision))
    throw expected(`caller.revision: expected one of ${SUPPORTED_REVISIONS.join(', ')}`, revision);
  if (principal !== undefined && (typeof principal !== 'string' || principal.length > MAX_PRINCIPAL))
    throw expected(`caller.principal: expected a text of at most ${MAX_PRINCIPAL} characters`, principal);
  if (logLevel !== undefined && !isLogLevel(logLevel))
    throw expected(`caller.logLevel: expected one of ${LOG_LEVELS.join(', ')}`, logLevel);
  if (answers !== undefined && !Array.isArray(answers)) throw expected('caller.answers: expected a list', answers);
  const kinds: readonly unknown[] = answers ?? ANSWERABLE;
  return {
    ...(typeof revision === 'string' ? { revision } : {}),
    ...(typeof principal === 'string' && principal !== '' ? { principal } : {}),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...(answers === undefined ? {} : { answers: ANSWERABLE.filter((kind) => kinds.includes(kind)) }),
  };
}

function readAnswer(given: unknown): QuestionAnswer {
  if (!isObject(given)) throw expected('answer: expected an object with an action', given);
  const { action, roots } = given;
  switch (action) {
    case 'accept':
      return { action, content: members(given, 'content') };
    case 'decline':
    case 'cancel':
      return { action };
    case 'sample':
      return { action, result: members(given, 'result') };
    case 'roots': {
      const listed: readonly unknown[] = Array.isArray(roots) ? roots : [];
      return {
        action,
        roots: listed.map((root) => {
          const { name, ...rest } = isObject(root) ? root : {};
          const uri = text(rest, 'uri', 'a file: URI');
          return typeof name === 'string' ? { uri, name } : { uri };
        }),
      };
    }
    default:
      throw expected('answer.action: expected "accept", "decline", "cancel", "sample" or "roots"', action);
  }
}

function text(given: Members, name: string, what: string): string {
  const value = given[name];
  if (typeof value === 'string') return value;
  throw expected(`${name}: expected ${what}`, value);
}

function number(given: Members, name: string): number {
  const value = given[name];
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw expected(`${name}: expected a number`, value);
}

function members(given: Members, name: string): JsonObject {
  const value = given[name] ?? {};
  if (isJsonObject(value)) return value;
  throw expected(`${name}: expected an object`, value);
}

function texts(given: Members, name: string): Readonly<Record<string, string>> {
  const value = members(given, name);
  const found: Record<string, string> = {};
  for (const [key, member] of Object.entries(value)) {
    if (typeof member !== 'string') throw expected(`${name}.${key}: expected a text`, member);
    // A member of that name would set the prototype.
    if (key !== '__proto__') found[key] = member;
  }
  return found;
}

function expected(what: string, came: unknown): InputError {
  return new InputError(400, `${what}, got ${describe(came)}`);
}
