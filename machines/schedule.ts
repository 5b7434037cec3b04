/** The lifecycle of a schedule of a server, from its first slot to its removal. Pure. */
import { Chart } from './chart/chart.ts';

export type ScheduleEvent =
  /** This process serves the cell of the schedule. */
  | { type: 'take' }
  /** The store has answered with the last slot. */
  | { type: 'read' }
  /** The date of its next slot is to be stored: it is new, or has other dates than before. */
  | { type: 'plan' }
  /** A slot is due, or an operator runs it now. */
  | { type: 'due' }
  /** The write is durable. */
  | { type: 'stored' }
  /** The slot does not run: it was skipped, or has ended the process too often. */
  | { type: 'pass' }
  /** The handler has returned or thrown. */
  | { type: 'end' }
  /** Another process serves the cell, or the server stops. */
  | { type: 'leave' }
  /** Another process serves the cell already: nothing may be stored. */
  | { type: 'lose' }
  /** The program has removed it. */
  | { type: 'remove' };

/** *storing*: a write is on its way. *busy*: a slot runs, so that no other one begins. */
export type ScheduleTag = 'storing' | 'busy';

export const scheduleMachine = new Chart<ScheduleEvent, ScheduleTag>({
  id: 'schedule',
  initial: 'live',
  states: {
    live: {
      initial: 'away',
      on: {
        leave: { target: '.away', description: 'nothing runs' },
        lose: '.away',
        remove: { target: 'removed', description: 'by the program' },
      },
      states: {
        away: { description: 'another process runs it, or none', on: { take: 'reading' } },
        reading: {
          on: {
            read: 'waiting',
            plan: { target: 'planning', description: 'it is new, or has other dates' },
            due: { target: 'claiming', description: 'its last slot was interrupted' },
          },
        },
        planning: { tags: ['storing'], on: { stored: 'waiting' } },
        waiting: {
          description: 'for its next slot',
          on: { due: 'claiming', plan: { target: 'planning', description: 'it has other dates now' } },
        },
        claiming: {
          description: 'the slot and its successor become durable',
          tags: ['storing'],
          on: { stored: 'running', pass: { target: 'waiting', description: 'the slot does not run' } },
        },
        running: {
          tags: ['busy'],
          on: {
            end: 'recording',
            leave: { target: 'leaving', description: 'its signal aborts' },
            remove: { target: 'ending', description: 'its handler ends first' },
          },
        },
        recording: {
          description: 'its result becomes durable',
          tags: ['storing'],
          on: { stored: 'waiting' },
        },
        leaving: {
          description: 'its handler may end in time',
          tags: ['busy'],
          on: {
            end: { target: 'handing', description: 'another process may begin it again' },
            leave: { target: 'handing', description: 'its time is over' },
          },
        },
        handing: { tags: ['storing'], on: { stored: 'away' } },
        ending: { tags: ['busy'], on: { end: '#schedule.removed' } },
      },
    },
    removed: { type: 'final' },
  },
});
