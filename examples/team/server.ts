/**
 * The board of a team: two people and an agent share it, GitHub closes its cards, each night archives what is done, and a person
 * approves what the agent removes. `TEAM_URL` is its address for browsers.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type Server, type ServerOptions } from 'troupe';
import { github } from 'troupe/webhooks';
import { z } from 'zod';
import { boardMachine } from './board.ts';
import { personOfBrowser, personOfClient } from './people.ts';

const BOARD = 'team';

/** The part of GitHub's `pull_request` that the board reads. */
const Merged = z.object({
  action: z.literal('closed'),
  pull_request: z.object({ merged: z.literal(true), title: z.string() }),
});

const NIGHTLY = { cron: '0 3 * * *', timeZone: 'Europe/Berlin' };

/**
 * @param options such as a store, or the clock of a test
 * @param secret of the webhook; without the variable, nobody knows it
 * @param nightly the dates at which the board archives
 */
export function teamServer(
  options: Partial<ServerOptions> = {},
  secret = process.env.GITHUB_SECRET ?? randomUUID(),
  nightly: { readonly cron: string; readonly timeZone: string } = NIGHTLY,
): Server {
  const server = createServer({
    name: 'team',
    version: '1.0.0',
    http: {
      authenticate: ({ header }) => personOfClient(header('authorization')),
      signIn: {
        url: `${process.env.TEAM_URL ?? 'http://127.0.0.1:3000'}/oauth/callback`,
        identify: ({ header }) => personOfBrowser(header('cookie')),
      },
    },
    ...options,
  });

  server.machine('board', boardMachine, {
    description: 'A board with the cards of a team.',
    key: { argument: 'board', schema: z.string().max(40) },
    events: {
      invite: z.object({ who: z.string(), role: z.enum(['member', 'agent']) }),
      add: z.object({ title: z.string().max(200) }),
      done: z.object({ card: z.number().int().min(1) }),
      remove: z.object({ card: z.number().int().min(1) }),
    },
    roles: {
      of: ({ principal, context }) => context.members[principal],
      member: { events: ['invite', 'add', 'done', 'remove'] },
      // An agent adds cards. People decide what is done, and who is invited.
      agent: { events: ['add', 'remove'], view: ({ context }) => ({ cards: context.cards }) },
    },
    schedules: { nightly: { ...nightly, event: 'archive' } },
    view: ({ context }) => context,
    keep: true,
  });

  // What an agent removes is gone, so one of the people approves it.
  server.authorize(
    ({ element: { machine }, arguments: { card }, auth }) =>
      machine?.name !== 'board' ||
      machine.event !== 'remove' ||
      auth?.scopes.includes('team') === true ||
      (auth?.scopes.includes('agent') === true && {
        approve: { by: { scope: 'team' }, title: `Remove card ${String(card)}` },
      }),
    { name: 'a person approves what an agent removes', version: '1' },
  );

  const merged = server.event('board.merged', {
    description: 'A pull request was merged, and its card is done.',
    input: z.object({ board: z.string() }),
    payload: z.object({ board: z.string(), card: z.number() }),
  });

  // A pull request with the title "#3 …" closes card 3.
  server.webhook('/hooks/github', {
    verify: github({ secret }),
    async to({ type, body, key }) {
      const pull = type === 'pull_request' ? Merged.safeParse(body) : undefined;
      const card = Number(/^#(\d{1,6})\b/.exec(pull?.data?.pull_request.title ?? '')?.[1]);
      if (!card) return;
      // The handler runs at least once; with its key, the event takes effect once.
      await server.send('board', BOARD, { type: 'done', card }, { idempotencyKey: key });
      await merged.emit({ board: BOARD, card }, { id: key });
    },
  });

  return server;
}

export default teamServer();
