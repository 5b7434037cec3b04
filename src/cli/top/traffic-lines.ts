/** The lines of `troupe top` about events: types, callbacks, schedules and dead letters. Pure. */
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type {
  EventTypeLine,
  ScheduleLine,
  SubscriptionsView,
  TrafficView,
} from '../../inspector/traffic/traffic-messages.ts';
import { countdown, lasting, plural } from './format.ts';
import { type Line, line, type Tone } from './line.ts';

/** The maximum number of event types and of schedules shown. */
const MOST = 8;

/** @param now milliseconds since 1970 */
export function trafficLines({ types, subscriptions, schedules, letters }: TrafficView, now: number): readonly Line[] {
  const [newest] = letters;
  return [
    ...some(types, typeLine, 'event type'),
    ...(subscriptions.all === 0 ? [] : [subscriptionsLine(subscriptions, now)]),
    ...some(schedules, (schedule) => scheduleLine(schedule, now), 'schedule'),
    ...(newest
      ? [
          visible(
            `${plural(letters.length, 'dead letter')} · newest: ${newest.kind} ${newest.what}: ${newest.error}`,
            'bad',
          ),
        ]
      : []),
  ];
}

function some<T>(all: readonly T[], lineOf: (each: T) => Line, noun: string): readonly Line[] {
  const more = all.length - MOST;
  return [...all.slice(0, MOST).map(lineOf), ...(more > 0 ? [visible(`… and ${plural(more, noun)}`, 'faint')] : [])];
}

function typeLine({ name, head, retained, perMinute, streams, webhooks }: EventTypeLine): Line {
  const newest = head === undefined || head === 0 ? 'no event yet' : `#${head.toLocaleString('en')}`;
  const kept = `${plural(retained, 'event')} kept`;
  const listeners = [plural(streams, 'stream'), plural(webhooks, 'webhook')];
  return visible([`event ${name}`, newest, `${perMinute.toLocaleString('en')}/min`, kept, ...listeners].join(' · '));
}

function subscriptionsLine({ all, suspended, failing, some: lines }: SubscriptionsView, now: number): Line {
  const dates = lines.flatMap((each) => (each.nextAttempt === undefined ? [] : [{ ...each, at: each.nextAttempt }]));
  const [next] = dates.sort((a, b) => a.at - b.at);
  const texts = [
    plural(all, 'webhook subscription'),
    ...(suspended === 0 ? [] : [`${suspended} suspended`]),
    ...(failing === 0 ? [] : [`${failing} failing`]),
    ...(next ? [`next attempt in ${countdown(next.at - now)} at ${next.host} (${next.category ?? 'failed'})`] : []),
  ];
  return visible(texts.join(' · '), suspended + failing > 0 ? 'bad' : 'plain');
}

function scheduleLine({ name, machine, state, dates, next, running, last }: ScheduleLine, now: number): Line {
  const isLate = running === undefined && next !== undefined && next < now;
  const when =
    running !== undefined
      ? 'runs now'
      : next === undefined
        ? state
        : isLate
          ? `late by ${lasting(now - next)}`
          : `next in ${countdown(next - now)}`;
  const failed = last?.incident === undefined ? [] : [`last run failed (incident ${last.incident})`];
  const whose = machine === undefined ? `schedule ${name}` : `schedule ${name} of each ${machine}`;
  return visible([whose, when, dates, ...failed].join(' · '), isLate || failed.length > 0 ? 'bad' : 'plain');
}

function visible(text: string, tone?: Tone): Line {
  return line(visibleLine(text), tone);
}
