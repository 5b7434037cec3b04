/** Reads from the annotations of a tool whether it may run twice. */
import { isObject } from '../../core/protocol/json.ts';

/** A tool whose annotations decide whether a call may be repeated, unless another server claims them. */
export interface HintedTool {
  readonly definition: unknown;
  readonly untrusted?: true | undefined;
}

/** The annotations of a tool; none of a tool whose server is not trusted. */
export function hintsOf({ definition, untrusted }: HintedTool): Readonly<Record<string, unknown>> {
  const annotations = isObject(definition) && !untrusted ? definition.annotations : undefined;
  return isObject(annotations) ? annotations : NONE;
}

const NONE: Readonly<Record<string, never>> = Object.freeze({});

/** True if running the tool twice has the same effect as running it once. */
export function isRepeatable(tool: HintedTool): boolean {
  const { readOnlyHint, idempotentHint } = hintsOf(tool);
  return readOnlyHint === true || idempotentHint === true;
}
