/** The protocol revisions that Troupe supports, oldest first, and the era of each. */

export const LEGACY_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
const MODERN_REVISIONS = ['2026-07-28'] as const;

export type LegacyRevision = (typeof LEGACY_REVISIONS)[number];
export type ModernRevision = (typeof MODERN_REVISIONS)[number];
export type Revision = LegacyRevision | ModernRevision;

/** *legacy*: an `initialize` handshake opens a session. *modern*: every request carries its own `_meta`. */
export type Era = 'legacy' | 'modern';

export const LATEST_LEGACY: LegacyRevision = '2025-11-25';
export const LATEST_MODERN: ModernRevision = '2026-07-28';

/** Every revision, newest first, in the order of errors and `server/discover`. */
export const SUPPORTED_REVISIONS: readonly Revision[] = [...LEGACY_REVISIONS, ...MODERN_REVISIONS].reverse();

export function isLegacyRevision(value: unknown): value is LegacyRevision {
  return LEGACY_REVISIONS.some((revision) => revision === value);
}

export function isModernRevision(value: unknown): value is ModernRevision {
  return MODERN_REVISIONS.some((revision) => revision === value);
}
