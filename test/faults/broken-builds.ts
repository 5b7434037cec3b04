/** All broken builds: a reliability test counts only if it finds its own. */

import { APPROVALS } from './approvals.ts';
import { APP_FAULTS } from './apps.ts';
import { AUDIT } from './audit.ts';
import { AUTHORIZATION } from './authorization.ts';
import { BROADCASTS } from './broadcasts.ts';
import type { BrokenBuild } from './broken-build.ts';
import { CALL_RELAY } from './call-relay.ts';
import { CLIENT_FAULTS } from './client-connection.ts';
import { CLIENT_SIGN_IN } from './client-sign-in.ts';
import { CLIENT_SKILLS } from './client-skills.ts';
import { CLIENT_TOKENS } from './client-tokens.ts';
import { COMMAND } from './command.ts';
import { EVENT_WEBHOOKS } from './event-webhooks.ts';
import { EVENTS } from './events.ts';
import { FLEET } from './fleet.ts';
import { GATEWAY_FAULTS } from './gateway.ts';
import { HANDLES } from './handles.ts';
import { HOOKS } from './hooks.ts';
import { HTTP } from './http.ts';
import { INSPECTOR } from './inspector.ts';
import { LIMITS } from './limits.ts';
import { LINK } from './link.ts';
import { MESSAGES } from './messages.ts';
import { MOUNT_FAULTS } from './mounts.ts';
import { NODES } from './nodes.ts';
import { OAUTH } from './oauth.ts';
import { PROCESS } from './process.ts';
import { SCHEDULES } from './schedules.ts';
import { SESSIONS } from './sessions.ts';
import { SIMULATION } from './simulation.ts';
import { SKILLS_OF_SERVER } from './skills.ts';
import { STATE } from './state.ts';
import { STORE } from './store.ts';
import { SUPERVISION } from './supervision.ts';
import { TASKS } from './tasks.ts';
import { TELEMETRY } from './telemetry.ts';
import { TOOL_LIMITS } from './tool-limits.ts';
import { TOOLSET } from './toolset.ts';

export const BROKEN_BUILDS: readonly BrokenBuild[] = [
  ...STORE,
  ...EVENTS,
  ...FLEET,
  ...HANDLES,
  ...MESSAGES,
  ...HOOKS,
  ...TOOLSET,
  ...SESSIONS,
  ...TASKS,
  ...PROCESS,
  ...COMMAND,
  ...SUPERVISION,
  ...HTTP,
  ...BROADCASTS,
  ...LIMITS,
  ...LINK,
  ...NODES,
  ...SIMULATION,
  ...SCHEDULES,
  ...EVENT_WEBHOOKS,
  ...CLIENT_FAULTS,
  ...MOUNT_FAULTS,
  ...GATEWAY_FAULTS,
  ...CALL_RELAY,
  ...CLIENT_TOKENS,
  ...CLIENT_SKILLS,
  ...SKILLS_OF_SERVER,
  ...CLIENT_SIGN_IN,
  ...INSPECTOR,
  ...OAUTH,
  ...AUDIT,
  ...TELEMETRY,
  ...AUTHORIZATION,
  ...TOOL_LIMITS,
  ...STATE,
  ...APPROVALS,
  ...APP_FAULTS,
];
