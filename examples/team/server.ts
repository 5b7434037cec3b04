/** The board of a team: two people and an agent share it, GitHub closes its cards, and each night archives what is done. */
import { randomUUID } from 'node:crypto';
import { createServer, type Server, type ServerOptions } from 'troupe';
import { github } from 'troupe/webhooks';
import { z } from 'zod';
import { boardMachine } from './board.ts';

const BOARD = 'team';

/** The part of GitHub's `pull_request` that the board reads. */
const Merged = z.object({
  action: z.literal('closed'),
  pull_request: z.object({ merged: z.literal(true), title: z.string() }),
});

/** @param options such as a store, or the clock of a test @param secret of the webhook; without the variable, nobody knows it */
export function teamServer(
  options: Partial<ServerOptions> = {},
  secret = process.env.GITHUB_SECRET ?? randomUUID(),
): Server {
  const server = createServer({ name: 'team', version: '1.0.0', ...options });

  server.machine('board', boardMachine, {
    description: 'A board with the cards of a team.',
    key: { argument: 'board', schema: z.string().max(40) },
    events: {
      invite: z.object({ who: z.string(), role: z.enum(['member', 'agent']) }),
      add: z.object({ title: z.string().max(200) }),
      done: z.object({ card: z.number().int().min(1) }),
    },
    roles: {
      of: ({ principal, context }) => context.members[principal],
      member: { events: ['invite', 'add', 'done'] },
      // An agent adds cards. People decide what is done, and who is invited.
      agent: { events: ['add'], view: ({ context }) => ({ cards: context.cards }) },
    },
    view: ({ context }) => context,
    keep: true,
  });

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

  server.schedule('archive', { cron: '0 3 * * *', timeZone: 'Europe/Berlin' }, async ({ scheduledFor }) => {
    await server.send('board', BOARD, { type: 'archive' }, { idempotencyKey: `archive ${scheduledFor}` });
  });

  return server;
}

export default teamServer();
