/** Who the clients of a simulated world are: several of one principal, several without a name, of each era. */
export type Era = 'legacy' | 'modern';

export interface Who {
  /** Over HTTP its session outlives its connections. */
  readonly over: 'memory' | 'http';
  /** Whose canaries it may see. */
  readonly owner: string;
  /** Undefined where nothing authenticates. */
  readonly principal: string | undefined;
  readonly revision: '2024-11-05' | '2025-03-26' | '2025-06-18' | '2025-11-25' | '2026-07-28';
}

export const ROSTER: readonly Who[] = [
  { over: 'memory', owner: 'ann', principal: 'ann', revision: '2025-11-25' },
  { over: 'memory', owner: 'ann', principal: 'ann', revision: '2026-07-28' },
  { over: 'memory', owner: 'bob', principal: 'bob', revision: '2026-07-28' },
  { over: 'memory', owner: 'bob', principal: 'bob', revision: '2025-06-18' },
  { over: 'memory', owner: 'eve', principal: undefined, revision: '2025-11-25' },
  { over: 'memory', owner: 'mal', principal: undefined, revision: '2026-07-28' },
  { over: 'memory', owner: 'old', principal: undefined, revision: '2025-03-26' },
  { over: 'http', owner: 'ann', principal: 'ann', revision: '2025-11-25' },
  { over: 'http', owner: 'cid', principal: 'cid', revision: '2025-11-25' },
];

export function eraOf({ revision }: Who): Era {
  return revision === '2026-07-28' ? 'modern' : 'legacy';
}

/** Whether its revision has tasks. */
export function hasTasks({ revision }: Who): boolean {
  return revision === '2025-11-25' || revision === '2026-07-28';
}
