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
  /** The number of cards that were removed because they were done. */
  readonly archived: number;
}

export const boardMachine = setup({
  types: {
    input: {} as { key: string; principal: string },
    context: {} as Board,
    events: {} as
      | { type: 'invite'; who: string; role: 'member' | 'agent'; by: string }
      | { type: 'add'; title: string; by: string }
      | { type: 'done'; card: number; by: string }
      // The program sends this one: no client may.
      | { type: 'archive'; by: string },
  },
  guards: { hasCard: ({ context }, { card }: { card: number }) => context.cards.some(({ id }) => id === card) },
}).createMachine({
  context: ({ input }) => ({ members: { [input.principal]: 'member' }, cards: [], archived: 0 }),
  initial: 'open',
  states: {
    open: {
      on: {
        invite: {
          actions: assign({ members: ({ context, event }) => ({ ...context.members, [event.who]: event.role }) }),
        },
        add: {
          actions: assign({
            cards: ({ context: { cards, archived }, event: { title, by } }) => [
              ...cards,
              { id: cards.length + archived + 1, title, by, done: false },
            ],
          }),
        },
        done: {
          guard: { type: 'hasCard', params: ({ event }) => ({ card: event.card }) },
          actions: assign({
            cards: ({ context, event }) =>
              context.cards.map((card) => (card.id === event.card ? { ...card, done: true } : card)),
          }),
        },
        archive: {
          actions: assign(({ context: { cards, archived } }) => ({
            cards: cards.filter(({ done }) => !done),
            archived: archived + cards.filter(({ done }) => done).length,
          })),
        },
      },
    },
  },
});
