/** The model of an inspected server, for the page, `troupe top` and coverage alike: pure, and fed with frames only. */
export { ActorLine, type Life, type Standing, type Timer } from './actor-line.ts';
export { type Change, changes } from './changes.ts';
export { type Coverage, KnownChart, type Visits } from './coverage.ts';
export { type Exchange, type ExchangeStatus, type Notice, statusAt } from './exchange.ts';
export { type Hibernating, hibernatingOf, KNOWS_HIBERNATING } from './hibernating.ts';
export { type Idle, idleTimes } from './idle.ts';
export { LIVE } from './log.ts';
export { CLIENT, isAuthored, isMachinery, type MessageRow } from './message-rows.ts';
export { missing } from './missing.ts';
export { Model, type ModelOptions } from './model.ts';
export { percentile, type Timing, timings } from './percentiles.ts';
export { type Difference, differences } from './plain.ts';
export { framesOf, recordingOf } from './retell.ts';
export { type StateSpan, type TimelineMark, type TimelineRow, timelineRows, type WireSpan } from './timeline-rows.ts';
export { doorName, flatten, HIBERNATES, nameOf, type TreeNode, treeOf } from './tree.ts';
export { holdsUnseen, sizeOf, tableOf, type Unseen, unseenOf } from './unseen.ts';
export { eventName, exchangeWaits, lineOf, type Waited, waitsOf } from './waiting.ts';
