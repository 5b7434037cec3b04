/** The state of a statechart as text: the paths of the active states. */
import { isObject } from '../../protocol/json.ts';

/**
 * The state as paths, such as `order.asking`; those of parallel states side by side. A machine that fails to start has
 * none.
 */
export function pathOf({ status, value }: { readonly status: string; readonly value?: unknown }): string {
  if (typeof value === 'string') return value;
  return value === undefined ? status : pathsIn(value).join(' & ');
}

/** The paths in a state value of XState: those of parallel states side by side. @example ['paying.charging'] */
export function pathsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const paths = pathsIn(inner);
    return paths.length === 0 ? [name] : paths.map((path) => `${name}.${path}`);
  });
}
