/**
 * The model of an inspected server, shared by the page, `troupe top` and coverage. It is pure: frames are its only
 * input.
 */
export { type ActorLife, ActorLine, type PendingTimer, type Since, type Standing } from './actor-line.ts';
export { isUpstream } from './belonging.ts';
export { argumentLine, givenLine, lastCalls, resultLine, valueLine } from './call-lines.ts';
export { type ActorChange, changes } from './changes.ts';
export { type Coverage, KnownChart, type Visits } from './chart-coverage.ts';
export { hasClient, isUnused } from './clients.ts';
export { clusterNodesOf, type KnownNodes, type NodeLine } from './cluster-nodes.ts';
export { errorOf, type FailureGroup, failuresOf } from './failure-groups.ts';
export { hasFinished } from './finished.ts';
export {
  type Hibernating,
  hibernates,
  hibernatingOf,
  hibernatingSessionsOf,
  KNOWS_HIBERNATING,
} from './hibernating.ts';
export { type Idle, idleTimes } from './idle.ts';
export { CLIENT, isAuthored, isMachinery, type MessageRow, UPSTREAM } from './message-rows.ts';
export { missing } from './missing.ts';
export { Model, type ModelOptions } from './model.ts';
export { framesOf, recordingOfModel } from './model-frames.ts';
export { LIVE } from './ordered-log.ts';
export { percentile, type Timing, timings } from './percentiles.ts';
export { type Difference, differences, isList, member } from './plain-values.ts';
export { PROGRESS, type Progress, progressOf } from './progress.ts';
export { type LaneCall, type ScriptLane, scriptLane, stopsOf } from './script-lane.ts';
export { scriptRuns } from './script-runs.ts';
export { type StateSpan, type TimelineMark, type TimelineRow, timelineRows, type WireSpan } from './timeline-rows.ts';
export { actorTree, displayName, doorName, flatten, INTERNAL, type TreeNode } from './tree.ts';
export { holdsUnseen, sizeOf, tableOf, type Unseen, unseenOf } from './unseen.ts';
export { eventName, exchangeWaits, lineOf, type Waited, waitsOf } from './waiting-for.ts';
export { inTurn, nodeWaits, type WaitingRow, waitingList } from './waiting-list.ts';
export { type ExchangeStatus, hopName, type Notice, statusAt, type WireExchange } from './wire-exchange.ts';
