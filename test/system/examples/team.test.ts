/** The example of a team's board, in memory: two people and an agent share it through a day, with GitHub and the night's schedule. */
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { teamServer } from '../../../examples/team/server.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { connect } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { until } from '../../harness/wait.ts';

const test = suite('examples/team');
const SECRET = 'a secret of this test';
const PAGE = 'http://127.0.0.1:3000/approvals/TiuCimUpky0HIX57CPE-K_';

const Shown = z.object({ accepts: z.array(z.string()), view: z.unknown() });
const Polled = z.object({ events: z.array(z.object({ data: z.unknown() })), cursor: z.string() });

test('two people and an agent share a board, a person approves what the agent removes, GitHub closes a card, and the night archives it', async () => {
  const clock = new SimulatedClock();
  const server = teamServer({ clock }, SECRET);
  const board = 'team';
  const as = (principal: string, scope = 'team') => connect(server, { auth: { principal, scopes: [scope] } });
  const [ada, bob, agent] = await Promise.all([as('ada'), as('bob'), as('agent', 'agent')]);

  // Ada's first event creates the board, whose member she is. Until she invites the others, it is unknown to them.
  await ada.call('board_add', { board, title: 'Write the docs' });
  assert.ok((await agent.call('board_get', { board })).isError);
  await ada.call('board_invite', { board, who: 'bob', role: 'member' });
  await ada.call('board_invite', { board, who: 'agent', role: 'agent' });
  const added = await agent.call('board_add', { board, title: 'Mend the build' });
  assert.equal(Shown.parse(added.structuredContent).accepts, ['add', 'remove']);
  assert.ok((await agent.call('board_done', { board, card: 2 })).isError);

  // The agent removes a card once one of the people has approved it.
  const transcript: string[] = [];
  const says = async (tool: string, args: JsonObject): Promise<void> => {
    const text = textOf(await agent.call(tool, args));
    // Over HTTP, people decide on a page.
    const shown = text
      .replace(/until [^ ]+Z/, 'until 2026-11-30T21:35:45Z')
      .replace(/Its operator decides .*?control\./, `Whoever may approve it decides on the page ${PAGE}.`);
    transcript.push(`> ${tool} ${JSON.stringify(args)}\n${shown}\n`);
  };
  await says('board_add', { board, title: 'Delete the old build' });
  const removal = { board, card: 3 };
  await says('board_remove', removal);
  const approver = { principal: 'bob', scopes: ['team'] };
  for (const { id, title } of await server.approvals.list({ approver })) {
    assert.is(title, 'Remove card 3');
    await server.approvals.decide(id, { approver, decision: 'approve' });
  }
  await says('board_remove', removal);
  const readme = readFileSync(fileURLToPath(new URL('../../../examples/team/README.md', import.meta.url)), 'utf8');
  assert.is(/^```\n(> board_add.*?)^```$/ms.exec(readme)?.[1], transcript.join('\n'));

  // A pull request of card 2 is merged. GitHub delivers that twice.
  const poll = async (cursor: string | null) =>
    Polled.parse(await bob.request('events/poll', { name: 'board.merged', arguments: { board }, cursor }));
  const { cursor } = await poll(null);
  const body = JSON.stringify({ action: 'closed', pull_request: { merged: true, title: '#2 Mend the build' } });
  const signature = createHmac('sha256', SECRET).update(body).digest('hex');
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-github-delivery': 'd1',
    'x-hub-signature-256': `sha256=${signature}`,
  };
  for (let times = 0; times < 2; times += 1) {
    const got = await server.fetch(new Request('http://localhost/hooks/github', { method: 'POST', body, headers }));
    assert.is(got.status, 200);
  }
  let events: readonly unknown[] = [];
  await until(async () => {
    events = (await poll(cursor)).events.map(({ data }) => data);
    return events.length > 0;
  }, 'the event of the merge');
  assert.equal(events, [{ board, card: 2 }]);

  // The night archives what is done. The next card gets the next number.
  await clock.advance(86_400_000);
  const morning = await bob.call('board_add', { board, title: 'Release' });
  assert.equal(Shown.parse(morning.structuredContent).view, {
    members: { ada: 'member', bob: 'member', agent: 'agent' },
    cards: [
      { id: 1, title: 'Write the docs', by: 'ada', done: false },
      { id: 4, title: 'Release', by: 'bob', done: false },
    ],
    ...{ next: 5, removed: 1, archived: 1, nights: [{ night: '2026-01-01T02:00:00.000Z', archived: 1, missed: 0 }] },
  });
  await server.close();
});
