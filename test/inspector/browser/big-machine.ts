/** A statechart of 24 states, nested and parallel: a brewery that cools, cleans and brews at the same time. */
import { createMachine } from 'xstate';

export const breweryMachine = createMachine({
  id: 'brewery',
  initial: 'closed',
  states: {
    closed: { on: { open: 'working' } },
    working: {
      type: 'parallel',
      on: { close: 'closed', alarm: 'stopped' },
      states: {
        brewing: {
          initial: 'waiting for malt',
          states: {
            'waiting for malt': { on: { deliver: 'mashing' } },
            mashing: { on: { heat: 'lautering', spoil: 'waiting for malt' }, after: { 3600000: 'lautering' } },
            lautering: { on: { drain: 'boiling' } },
            boiling: {
              initial: 'bitter hops',
              on: { finish: 'fermenting' },
              states: {
                'bitter hops': { on: { aroma: 'aroma hops' } },
                'aroma hops': { on: { whirl: 'whirlpool' } },
                whirlpool: { type: 'final' },
              },
            },
            fermenting: { on: { taste: 'fermenting', bottle: 'bottling' } },
            bottling: { on: { empty: 'waiting for malt' } },
          },
        },
        cooling: {
          initial: 'off',
          states: {
            off: { on: { 'temperature.high': 'on' } },
            on: { on: { 'temperature.low': 'off', 'compressor.failed': 'broken' } },
            broken: { on: { 'compressor.repaired': 'off' } },
          },
        },
        cleaning: {
          initial: 'clean',
          states: {
            clean: { on: { use: 'dirty' } },
            dirty: { on: { rinse: 'rinsing' } },
            rinsing: { on: { soap: 'soaping' }, after: { 600000: 'soaping' } },
            soaping: { on: { rinse: 'clean', abort: 'dirty' } },
          },
        },
      },
    },
    stopped: { on: { inspect: 'inspected' } },
    inspected: { on: { open: 'working', close: 'closed' } },
  },
});

export const BREWERY_EVENTS = {
  open: true,
  close: true,
  alarm: true,
  deliver: true,
  heat: true,
  drain: true,
  aroma: true,
  whirl: true,
  finish: true,
  taste: true,
  bottle: true,
  empty: true,
  use: true,
  rinse: true,
  soap: true,
  inspect: true,
} as const;
