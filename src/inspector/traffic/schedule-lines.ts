/** Lists the schedules of a server and of its machines for viewers, and runs one by hand. */
import { isoOf } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Inspection } from '../../core/kernel/inspection/inspection.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { AnyMachine } from '../../features/machines/define-machine.ts';
import type { ScheduleStatus } from '../../features/schedules/schedule.actor.ts';
import { nextDue, readPlan } from '../../features/schedules/schedule-slots.ts';
import type { Internals } from '../../features/server/internals.ts';
import type { Server } from '../../features/server/server.ts';
import { InputError } from '../http/viewer-input.ts';
import type { ScheduleLine, ScheduleRun } from './traffic-messages.ts';

/** The schedules of a server, and the parts that run them. */
export interface ScheduleSource {
  readonly server: Pick<Server, 'machines' | 'send'>;
  readonly inside: Pick<Internals, 'inspection' | 'schedules'>;
}

/** Most instances that are named for a machine, and most that are looked at. */
const MAX_INSTANCES = 50;
const MAX_LOOKED_AT = 1_000;

/** @param date milliseconds since 1970 */
export function scheduleLines({ server, inside }: ScheduleSource, date: number): readonly ScheduleLine[] {
  const { inspection } = inside;
  // Asking for the schedules creates their table.
  const own = inspection.living(new Set(['schedule']), 1).length === 0 ? [] : inside.schedules().statuses();
  const machines = server.machines.definitions().flatMap((machine) => linesOfMachine(machine, inspection, date));
  return [...own.map(lineOf), ...machines];
}

/**
 * Runs a handler without a slot, or sends an instance the event of its schedule. No date moves.
 *
 * @param date milliseconds since 1970
 * @returns the outcome in words
 * @throws {InputError}
 */
export async function runSchedule(source: ScheduleSource, run: ScheduleRun, date: number): Promise<string> {
  const { schedule, machine: name, instance = '' } = run;
  const { server, inside } = source;
  if (name === undefined) {
    if (!scheduleLines(source, date).some((line) => line.name === schedule && line.machine === undefined))
      throw new InputError(404, `schedule: there is none of the name "${schedule}"`);
    if (inside.schedules().run(schedule)) return `runs "${schedule}"`;
    throw new InputError(409, `schedule "${schedule}": this process does not run it now`);
  }
  const machine = server.machines.definitions().find((definition) => definition.name === name);
  const found = machine?.schedules?.[schedule];
  if (!machine || !found)
    throw new InputError(404, `schedule: the machine "${name}" has none of the name "${schedule}"`);
  const event = { type: found.event, scheduledFor: isoOf(date), missed: 0, manual: true };
  try {
    if (machine.key !== undefined) await server.send(name, instance, event);
    else {
      const live = inside.inspection.live(`handle/${name}/${instance}`);
      if (!live?.give)
        throw new InputError(409, `instance: no instance of "${name}" in memory has the handle "${instance}"`);
      live.give(event);
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(409, error instanceof Error ? error.message : String(error));
  }
  return `sent "${found.event}" to ${name} ${instance}`;
}

function lineOf({ name, state, dates, missed, next, running, result }: ScheduleStatus): ScheduleLine {
  return {
    ...{ name, state, dates: datesText(dates), missed },
    ...(next === undefined ? {} : { next }),
    ...(running === undefined ? {} : { running: running.at }),
    ...(result === undefined
      ? {}
      : {
          last: {
            ...{ began: result.began, tookMs: result.tookMs },
            ...(result.manual && { manual: result.manual }),
            ...(result.incident === undefined ? {} : { incident: result.incident }),
          },
        }),
  };
}

function linesOfMachine(
  { name: machine, schedules = {} }: AnyMachine,
  inspection: Inspection,
  date: number,
): readonly ScheduleLine[] {
  const all = Object.entries(schedules);
  if (all.length === 0) return [];
  const instances = instancesOf(machine, inspection);
  return all.map(([name, given]): ScheduleLine => {
    const plan = readPlan(`schedule "${name}"`, given, { event: option.anything });
    // An interval counts from the creation of each instance.
    const next = 'everyMs' in given ? undefined : nextDue(plan, { last: date, anchor: date }, 0);
    return {
      ...{ name, machine, event: given.event, state: 'each instance', dates: datesText(plan.pattern.text) },
      ...{ missed: plan.missed, instances },
      ...(next === undefined ? {} : { next }),
    };
  });
}

/** The keys, or else the handles, of instances in memory: the newest first. */
function instancesOf(machine: string, inspection: Inspection): readonly string[] {
  const prefix = `handle/${machine}/`;
  const own = inspection.living(new Set(['handle']), MAX_LOOKED_AT).filter((address) => address.startsWith(prefix));
  return own
    .slice(-MAX_INSTANCES)
    .reverse()
    .map((address) => {
      const key = inspection.live(address)?.facts?.()?.key;
      return typeof key === 'string' ? key : address.slice(prefix.length);
    });
}

/** @example datesText('every 60000') // 'every 1 min' */
function datesText(pattern: string): string {
  const [kind = '', number = '', ...rest] = pattern.split(' ');
  if (kind === 'cron') return [number, ...rest].join(' ');
  if (kind === 'every') return `every ${durationOf(Number(number))}`;
  return kind === 'at' ? `at ${isoOf(Number(number))}` : pattern;
}
