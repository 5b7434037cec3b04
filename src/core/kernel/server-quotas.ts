/** The quotas of a server: numbers of sessions, tasks, handles and suspended requests, and memory for all of them. */
import type { Limits } from './limits.ts';
import { type AnonymousShare, Quota } from './quota.ts';

export interface Quotas {
  readonly sessions: Quota;
  readonly tasks: Quota;
  readonly handles: Quota;
  readonly suspended: Quota;
  /** Calls with which views wait for changes. */
  readonly watches: Quota;
  /** Connections to the servers of mounts. */
  readonly upstreamConnections: Quota;
  /** Scopes of the state of callers. */
  readonly scopes: Quota;
  /** Bytes of everything that clients make the server hold. */
  readonly retained: Quota;
  /** Called if a transport authenticates clients: anonymous clients are then limited to their share. */
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
    suspended: quota('suspended requests', 'maxParked', 'maxParkedPerPrincipal'),
    watches: quota('calls that wait for a change', 'maxStatelessInFlight', 'maxWatches'),
    upstreamConnections: new Quota({
      what: 'connections to mounted servers',
      max: limits.maxUpstreamConnections,
      option: 'limits.maxUpstreamConnections',
    }),
    scopes: new Quota({ what: 'scopes of state', max: limits.maxStates, option: 'limits.maxStates', anonymous }),
    retained: quota('bytes in memory', 'maxRetainedBytes', 'maxRetainedBytesPerPrincipal'),
    authenticates() {
      anonymous.percent = limits.anonymousPercent;
    },
  };
}
