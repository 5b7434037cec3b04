/** All dialects by revision. */
import type { Revision } from '../revisions.ts';
import { dialect20241105 } from './2024-11-05.ts';
import { dialect20250326 } from './2025-03-26.ts';
import { dialect20250618 } from './2025-06-18.ts';
import { dialect20251125 } from './2025-11-25.ts';
import { dialect20260728 } from './2026-07-28.ts';
import type { Dialect } from './dialect.ts';

export type { Dialect } from './dialect.ts';

export const DIALECTS: Readonly<Record<Revision, Dialect>> = {
  '2024-11-05': dialect20241105,
  '2025-03-26': dialect20250326,
  '2025-06-18': dialect20250618,
  '2025-11-25': dialect20251125,
  '2026-07-28': dialect20260728,
};

/** The dialect for a client whose revision is still unknown: the simplest one. */
export const FIRST_DIALECT: Dialect = dialect20241105;
