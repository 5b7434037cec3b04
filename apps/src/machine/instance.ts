/** An instance as the server sends it: in the result of a tool of its machine, in its resource, and in the answers of the watch. */
import type { FormField } from '../../../src/features/asking/form-model.ts';
import { isMembers } from '../view/host-link.ts';
import { forView, type ToolResult } from '../view/server-proxy.ts';

/** A moment: milliseconds since 1970, or ISO 8601. */
export type Moment = number | string;

/** An open question of an instance. */
export interface Question {
  readonly id: string;
  readonly kind: string;
  readonly message?: string;
  readonly fields?: readonly FormField[];
  readonly url?: string;
  readonly until?: Moment;
}

export interface Instance {
  readonly handle: string;
  readonly status: string;
  /** The state value of XState. */
  readonly state: unknown;
  readonly version: number;
  readonly accepts: readonly string[];
  readonly view?: unknown;
  readonly output?: unknown;
  readonly failure?: string;
  readonly expires: Moment;
  readonly asks?: readonly Question[];
  /** Absent in the result of a tool, as `timers` and `now` are. */
  readonly blocked?: readonly { readonly event: string; readonly guard: string }[];
  readonly timers?: readonly { readonly label: string; readonly at: Moment; readonly lasts: number }[];
  /** The time of the server. */
  readonly now?: Moment;
}

/** The server checks what it sends by a schema. Anything else that has a handle is not from this server. */
export function isInstance(value: unknown): value is Instance {
  return isMembers(value) && typeof value.handle === 'string';
}

/** The instance in a result: as views show it, or as a model reads it where the host drops the rest. */
export function instanceIn(result: ToolResult): Instance | undefined {
  const found = [forView(result).live, result.structuredContent].find(isInstance);
  // A call that made its instance fail is an error, and shows the failed instance.
  return result.isError && found?.status !== 'failed' ? undefined : found;
}

/** Milliseconds since 1970. */
export function msOf(moment: Moment): number {
  return new Date(moment).getTime();
}

/** The paths in a state value of XState, such as `paying.charging`. */
export function pathsIn(state: unknown): readonly string[] {
  if (!isMembers(state)) return typeof state === 'string' ? [state] : [];
  return Object.entries(state).flatMap(([name, inner]) => {
    const paths = pathsIn(inner);
    return paths.length === 0 ? [name] : paths.map((path) => `${name}.${path}`);
  });
}
