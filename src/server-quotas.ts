/** The quotas of a server: how many sessions, tasks, handles and questions its clients may have, and how much memory for all of them. */
import type { Limits } from './limits.ts';
import { type AnonymousShare, Quota } from './quota.ts';

export interface Quotas {
  readonly sessions: Quota;
  readonly tasks: Quota;
  readonly handles: Quota;
  readonly parked: Quota;
  /** In bytes, of everything that clients make the server hold. */
  readonly retained: Quota;
  /** A transport authenticates: anonymous clients are no longer all that there are. */
  authenticates(): void;
}

export function quotasOf(limits: Limits): Quotas {
  const anonymous: AnonymousShare = { percent: 100 };
  const quota = (what: string, most: keyof Limits, mostOfOne: keyof Limits): Quota =>
    new Quota({
      what,
      max: limits[most],
      option: `limits.${most}`,
      perPrincipal: { max: limits[mostOfOne], option: `limits.${mostOfOne}` },
      anonymous,
    });
  return {
    sessions: quota('sessions', 'maxSessions', 'maxSessionsPerPrincipal'),
    tasks: quota('tasks', 'maxTasks', 'maxTasksPerPrincipal'),
    handles: quota('handles', 'maxHandles', 'maxHandlesPerPrincipal'),
    parked: quota('open questions', 'maxParked', 'maxParkedPerPrincipal'),
    retained: quota('bytes in memory', 'maxRetainedBytes', 'maxRetainedBytesPerPrincipal'),
    authenticates() {
      anonymous.percent = limits.anonymousPercent;
    },
  };
}
