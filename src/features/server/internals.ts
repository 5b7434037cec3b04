/** Access for the inspector, which looks into a server and may act on it. Not a part of the public API. */

import type { Clock } from '../../core/kernel/clock.ts';
import type { Inspection } from '../../core/kernel/inspection/inspection.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { OperatorLog } from '../../core/kernel/operator-log.ts';
import type { NamedRule } from '../../core/messages/authorization-rule.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { ServerDescription } from '../../core/messages/results.ts';
import type { NamedClient, Transport } from '../../core/transports/transport.ts';
import type { EventService } from '../events/event-service.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import type { HookService } from '../hooks/hooks.feature.ts';
import type { MiddlewareLinks } from '../middleware/middleware-links.ts';
import type { ServerSchedules } from '../schedules/server-schedules.ts';
import type { SkillSource } from '../skills/skill-source.ts';
import type { DeadLetters } from './dead-letters.ts';

/** The key of {@link Internals} on a server of any copy of this package. */
export const INTERNALS = Symbol.for('troupe.inside');

export interface Internals {
  readonly inspection: Inspection;
  readonly clock: Clock;
  readonly log: OperatorLog;
  /** The statecharts that are currently registered. */
  machines(): readonly object[];
  /** The server as it introduces itself to clients. */
  introduction(): ServerDescription;
  readonly limits: Limits;
  /** The client on stdio or on a socket; undefined while it serves neither. */
  localClient(): NamedClient | undefined;
  /** The webhooks; undefined while there is none. */
  readonly hooks: HookService;
  /** Work that was given up, of each kind. */
  deadLetters(): DeadLetters;
  /** Records what viewers do; undefined without an audit. */
  readonly audit?: Mailbox<AuditMail> | undefined;
  /** The rules of the program, which decide for the server that `troupe dev` keeps across reloads, too. */
  readonly rules: NamedRule[];
  /** The middleware of the program, by the same rule. */
  readonly middleware: MiddlewareLinks;
  /** The event types of the program, by the same rule; undefined while there are none. */
  readonly events: EventService | undefined;
  /** The folders of skills of the program, by the same rule. */
  skillFolders(): readonly SkillSource[];
  /** The schedules of the program, by the same rule. */
  schedules(): ServerSchedules;
  /**
   * Opens a transport, even if the launcher of the program serves it on the program's behalf. @throws the errors of its
   * `open`
   */
  open(transport: Transport): Promise<void>;
}
