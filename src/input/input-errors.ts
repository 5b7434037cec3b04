/** Why a question was not answered: errors that a handler may catch, and that otherwise tell the model what is missing. */
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';

/**
 * The client cannot be asked this. A tool that does not catch it answers with a result that says so (`isError`); a prompt or
 * a resource with error -32021, which names the capability (2026-07-28 basic/index "Error Codes").
 */
export class CannotAsk extends ProtocolError {
  /** @param missing the capabilities that the client would have to declare */
  constructor(what: string, missing: JsonObject) {
    super(
      ErrorCode.MissingRequiredClientCapability,
      `${what} is needed here, and this client cannot be asked for it: it declares no such capability (${namesOf(missing)}). Give what is needed in the arguments, or use a client that can be asked.`,
      { requiredCapabilities: missing },
    );
  }
}

/** Nobody has answered: the client refused to put the question, it took too long, or what came did not fit. */
export class Unanswered extends Error {
  override readonly name = 'Unanswered';
}

function namesOf(missing: Readonly<Record<string, unknown>>, prefix = ''): string {
  return Object.entries(missing)
    .map(([name, inner]) =>
      isObject(inner) && Object.keys(inner).length > 0 ? namesOf(inner, `${prefix}${name}.`) : `${prefix}${name}`,
    )
    .join(', ');
}
