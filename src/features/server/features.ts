/** The features of a server, in the order in which they open. They stop in the reverse order. */
import type { Feature } from '../../core/server/feature.ts';
import { mounts } from '../../gateway/mounts/mounts.feature.ts';
import { approvals } from '../approvals/approvals.feature.ts';
import { apps } from '../apps/apps.feature.ts';
import { asking } from '../asking/asking.feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { code } from '../code/code.feature.ts';
import { durability } from '../durability/durability.feature.ts';
import { events } from '../events/events.feature.ts';
import { forgetting } from '../forgetting/forgetting.feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import { limits } from '../guard/limits/limits.feature.ts';
import { hooks } from '../hooks/hooks.feature.ts';
import { machines } from '../machines/machines.feature.ts';
import { middleware } from '../middleware/middleware.feature.ts';
import { schedules } from '../schedules/schedules.feature.ts';
import { skills } from '../skills/skills.feature.ts';
import { state } from '../state/state.feature.ts';
import { tasks } from '../tasks/tasks.feature.ts';
import { workers } from '../workers/workers.feature.ts';

export const FEATURES: readonly Feature[] = [
  ...[cluster, workers, audit, state, asking, apps, skills, machines, tasks, events, limits, authorization, durability],
  ...[approvals, middleware, code, mounts, schedules, hooks, forgetting],
];
