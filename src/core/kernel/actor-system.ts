/** The services that all actors of one server share: time, inspection, metrics, quarantine, and the operator's log. */

import type { RequestView } from '../messages/request-view.ts';
import { isProtocolError, toWireError, type WireError } from '../protocol/errors.ts';
import { authoredStack } from './authored-stack.ts';
import type { Clock } from './clock.ts';
import { Ids } from './ids.ts';
import { Inspection } from './inspection/inspection.ts';
import { fieldsOf, loggedError, type RuntimeLog } from './operator-log.ts';
import { Quarantine } from './quarantine.ts';
import { randomId } from './random-id.ts';
import { GuardedTelemetry } from './telemetry/guarded-telemetry.ts';
import { Metrics } from './telemetry/metrics.ts';
import type { Telemetry } from './telemetry/telemetry.ts';

export interface ActorSystem {
  readonly clock: Clock;
  readonly inspection: Inspection;
  /** Creates the ids of everything that outlives a request. */
  readonly ids: Ids;
  /** Counts always. */
  readonly metrics: Metrics;
  /** The tracing system. Never throws; undefined by default. */
  readonly telemetry: GuardedTelemetry | undefined;
  /** Lists quarantined actors. */
  readonly quarantine: Quarantine;
  /** Writes to the operator's log. Never throws. */
  readonly log: RuntimeLog;
  /**
   * Logs an error with its stack, under an id that a client may receive.
   *
   * @param request the request that failed, unless its code is running
   * @returns the incident's id for the client
   */
  incident(where: string, error: unknown, request?: RequestView): string;
}

interface ActorSystemOptions {
  readonly clock: Clock;
  /** Must not throw. */
  readonly log: RuntimeLog;
  /** The inspection record that caused what runs now outside of any turn; 0 if there is none. */
  causeOf?(): number;
  readonly telemetry?: Telemetry | undefined;
}

const INCIDENT_ID_LENGTH = 10;

export function createActorSystem({ clock, log, causeOf, telemetry }: ActorSystemOptions): ActorSystem {
  const incident = (where: string, error: unknown, request?: RequestView): string => {
    const id = randomId(INCIDENT_ID_LENGTH);
    const stack = authoredStack(error);
    const fields = { event: 'incident', incident: id, err: loggedError(error), ...fieldsOf(request) } as const;
    log('error', `incident ${id} in ${where}: ${stack}`, fields);
    return id;
  };
  const faulty = (error: unknown): void => void incident('a listener of inspect, which was removed', error);
  const metrics = new Metrics();
  return {
    clock,
    ids: new Ids(),
    inspection: new Inspection(clock, faulty, causeOf),
    metrics,
    telemetry:
      telemetry &&
      new GuardedTelemetry(
        telemetry,
        clock,
        (error) => void incident('the tracing system, whose errors are ignored', error),
      ),
    quarantine: new Quarantine(clock, metrics),
    log,
    incident,
  };
}

/** Converts an error into the one that a client receives, and logs it as an incident unless it was written for the client. */
export function wireErrorOf({ incident }: Pick<ActorSystem, 'incident'>, where: string, error: unknown): WireError {
  return toWireError(error, isProtocolError(error) ? '' : incident(where, error));
}
