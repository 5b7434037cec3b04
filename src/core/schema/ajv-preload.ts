/** Loads ajv while the process is idle, if a check will need it. */
import { loadAjv } from './ajv.ts';

/** True once a plain JSON Schema was registered whose checks need ajv. */
let needed = false;

/** A plain JSON Schema was registered that only ajv can check. */
export function needAjv(): void {
  needed = true;
}

/**
 * Loads ajv if a registered schema needs it. Call this while the process is idle, so that the first check does not wait;
 * a node of a cluster calls it before it joins.
 * A failure is reported by that check.
 */
export async function preloadAjv(): Promise<void> {
  if (needed) await loadAjv().catch(() => {});
}
