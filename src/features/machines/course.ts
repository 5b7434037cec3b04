/** The course of a call: the states that an instance passes while the call lasts, and the reasons. */

import type { AnyEventObject } from 'xstate';
import { CannotAsk, Unanswered } from '../../core/execution/input-errors.ts';
import type { AnyQuestion } from '../../core/execution/questions.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { HandleCourse } from './handle-messages.ts';

/** Maximum number of states and of reasons; the first state and the latest ones stay. */
const MAX_STATES = 8;
const MAX_REASONS = 4;
/** Maximum length of a question's message, in characters. */
const MAX_MESSAGE = 80;

/**
 * Appends a state to a course, unless it is the last one already, and the reasons that led to it.
 *
 * @example continued({ states: ['cart'], reasons: [] }, 'paid', []) // { states: ['cart', 'paid'], reasons: [] }
 */
export function continued({ states, reasons }: HandleCourse, state: string, more: readonly string[]): HandleCourse {
  const all = states.at(-1) === state ? states : [...states, state];
  const kept = all.length > MAX_STATES ? [...all.slice(0, 1), '…', ...all.slice(3)] : all;
  const others = more.filter((reason) => reason !== reasons.at(-1));
  return { states: kept, reasons: [...reasons, ...others].slice(-MAX_REASONS) };
}

/** Formats a course on one line. @example 'confirming → cart (the question "Charge 4?" was declined)' */
export function courseText({ states, reasons }: HandleCourse): string {
  return `${states.join(' → ')}${reasons.length === 0 ? '' : ` (${reasons.join('; ')})`}`;
}

/**
 * The reasons of a change that no event of a client has caused.
 *
 * @param questions the questions that were closed, by the id of their invocation
 * @param nameOf the name of an invocation by its id
 */
export function reasonsOf(
  events: readonly AnyEventObject[],
  questions: ReadonlyMap<string, string>,
  nameOf: (invocation: string) => string,
): readonly string[] {
  const others = events.flatMap(({ type }) => {
    const failed = /^xstate\.error\.actor\.(.+)$/.exec(type)?.[1];
    if (failed !== undefined) return questions.has(failed) ? [] : [`"${nameOf(failed)}" failed`];
    const delay = /^xstate\.after\.(.+?)\./.exec(type)?.[1];
    return delay === undefined ? [] : [`after ${durationOf(/^\d+$/.test(delay) ? Number(delay) : delay)}`];
  });
  return [...questions.values(), ...others].filter((reason) => reason !== '');
}

/** Says what happened to a question; an empty text if the states say enough. */
export function questionClosed(
  question: AnyQuestion,
  result: { readonly answer: unknown } | { readonly error: unknown },
): string {
  const failed = 'error' in result ? failure(result.error) : undefined;
  if ('sample' in question) return failed === undefined ? '' : `the question for the model of this client ${failed}`;
  if ('roots' in question) return failed === undefined ? '' : `the question for the user's directories ${failed}`;
  const { message } = 'elicit' in question ? question.elicit : question.elicitUrl;
  return `the question "${short(message)}" ${failed ?? answered('answer' in result ? result.answer : undefined)}`;
}

/** The model would otherwise call again. */
const CANNOT = 'this client does not support such questions, so another call from it does not help';

function failure(error: unknown): string {
  if (error instanceof CannotAsk) return `could not be asked: ${CANNOT}`;
  return error instanceof Unanswered ? `was not answered: ${short(error.message)}` : 'was not answered';
}

/** The content of an answer is for the machine. Only the answer to a form of one checkbox is shown: it is yes or no. */
function answered(answer: unknown): string {
  const { status, content } = isObject(answer) ? answer : {};
  if (status === 'declined' || status === 'cancelled') return `was ${status}`;
  const members = isObject(content) ? Object.entries(content) : [];
  const [name, value] = members.length === 1 ? (members[0] ?? []) : [];
  return typeof value === 'boolean' ? `was answered with ${name}: ${value}` : 'was answered';
}

function short(message: unknown): string {
  const line = String(message).replace(/\s+/g, ' ').trim();
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}…` : line;
}
