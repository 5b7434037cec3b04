/** Errors of unanswered questions. A handler may catch them; otherwise they tell the model what is missing. */
import { durationOf } from '../kernel/duration.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';

/**
 * The client cannot be asked this question. A tool that does not catch the error responds with an error result (`isError`);
 * a prompt or a resource with error -32021, which names the capability (2026-07-28 basic/index "Error Codes").
 */
export class CannotAsk extends ProtocolError {
  /** @param missing the capabilities that the client would have to declare */
  constructor(what: string, missing: JsonObject) {
    super(
      ErrorCode.MissingRequiredClientCapability,
      `this call needs ${what}, but the client does not declare the capability for it (${namesOf(missing)}). Pass the answer in the arguments, or use a client with this capability.`,
      { requiredCapabilities: missing },
    );
  }
}

/** No valid answer arrived: the client rejected the question, took too long, or sent invalid answers. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
}

/** The error for a question whose answer did not arrive in time. @param askMs milliseconds that the client had */
export function tooLate(askMs: number): Unanswered {
  return new Unanswered(`nobody answered within ${durationOf(askMs)} (the server's option is limits.askMs)`);
}

function namesOf(missing: Readonly<Record<string, unknown>>, prefix = ''): string {
  return Object.entries(missing)
    .map(([name, inner]) =>
      isObject(inner) && Object.keys(inner).length > 0 ? namesOf(inner, `${prefix}${name}.`) : `${prefix}${name}`,
    )
    .join(', ');
}
