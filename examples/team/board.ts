/** The board of a team, as a statechart: cards, and the members who may move them. */
import { assign, setup } from 'xstate';

export interface Card {
  readonly id: number;
  readonly title: string;
  readonly by: string;
  readonly done: boolean;
}

export interface Board {
  readonly members: Readonly<Record<string, 'member' | 'agent'>>;
  readonly cards: readonly Card[];
  /** The number of the next card. */
  readonly next: number;
  readonly removed: number;
  readonly archived: number;
  /** The last nights, how many cards each has archived, and how many nights before it were missed. */
  readonly nights: readonly { readonly night: string; readonly archived: number; readonly missed: number }[];
}

/** Nights that a board remembers. */
const NIGHTS = 100;

export const boardMachine = setup({
  types: {
    input: {} as { key: string; principal: string },
    context: {} as Board,
    events: {} as
      | { type: 'invite'; who: string; role: 'member' | 'agent'; by: string }
      | { type: 'add'; title: string; by: string }
      | { type: 'done'; card: number; by: string }
      | { type: 'remove'; card: number; by: string }
      // The schedule sends this one: no client may.
      | { type: 'archive'; scheduledFor: string; missed: number },
  },
  guards: { hasCard: ({ context }, { card }: { card: number }) => context.cards.some(({ id }) => id === card) },
}).createMachine({
  context: ({ input }) => ({
    ...{ members: { [input.principal]: 'member' }, cards: [], next: 1 },
    ...{ removed: 0, archived: 0, nights: [] },
  }),
  initial: 'open',
  states: {
    open: {
      on: {
        invite: {
          actions: assign({ members: ({ context, event }) => ({ ...context.members, [event.who]: event.role }) }),
        },
        add: {
          actions: assign(({ context: { cards, next }, event: { title, by } }) => ({
            cards: [...cards, { id: next, title, by, done: false }],
            next: next + 1,
          })),
        },
        done: {
          guard: { type: 'hasCard', params: ({ event }) => ({ card: event.card }) },
          actions: assign({
            cards: ({ context, event }) =>
              context.cards.map((card) => (card.id === event.card ? { ...card, done: true } : card)),
          }),
        },
        remove: {
          guard: { type: 'hasCard', params: ({ event }) => ({ card: event.card }) },
          actions: assign(({ context: { cards, removed }, event }) => ({
            cards: cards.filter(({ id }) => id !== event.card),
            removed: removed + 1,
          })),
        },
        archive: {
          actions: assign(({ context: { cards, archived, nights }, event }) => {
            const left = cards.filter(({ done }) => !done);
            const moved = cards.length - left.length;
            return {
              cards: left,
              archived: archived + moved,
              nights: [
                ...nights.slice(1 - NIGHTS),
                { night: event.scheduledFor, archived: moved, missed: event.missed },
              ],
            };
          }),
        },
      },
    },
  },
});
