/** Screenshots of examples/team in the inspector: a day of its board, with a removal that waits for a person. Not shipped. */
import { createHmac } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openInspector } from 'troupe/inspector';
import { connect } from 'troupe/testing';
import { teamServer } from '../../../examples/team/server.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { receiver, SECRET } from '../../../test/features/events/delivery/support.ts';
import { Browsing } from '../../../test/harness/browser.ts';

const out = process.argv[2] ?? join(tmpdir(), 'troupe-team-shots');
mkdirSync(out, { recursive: true });
const board = 'team';
const secret = 'a secret of these pictures';

const browsing = new Browsing();
for (const theme of ['light', 'dark'] as const) {
  const hook = await receiver();
  const server = teamServer({ log: () => {}, events: { callbacks: { allow: [hook.origin] } } }, secret);
  const inspector = await openInspector(server);
  const page = await browsing.page({ theme, width: 1440, height: 900 });
  await page.goto(inspector.url);
  await page.waitForTimeout(800);
  /** A member, whose client has the name of the member. */
  const as = async (principal: string, scope = 'team') => {
    const client = await connect(server, { auth: { principal, scopes: [scope] } });
    const meta = { 'io.modelcontextprotocol/clientInfo': { name: `${principal}'s client`, version: '1.0.0' } };
    const request = (method: string, params: JsonObject) => client.modern(method, params, meta);
    const call = (name: string, args: JsonObject) => request('tools/call', { name, arguments: args });
    return { call, request };
  };
  const [ada, bob, agent] = [await as('ada'), await as('bob'), await as('agent', 'agent')];
  await ada.call('board_add', { board, title: 'Write the docs' });
  await ada.call('board_invite', { board, who: 'bob', role: 'member' });
  await ada.call('board_invite', { board, who: 'agent', role: 'agent' });
  await agent.call('board_add', { board, title: 'Mend the build' });
  await agent.call('board_add', { board, title: 'Delete the old build' });
  const delivery = { mode: 'webhook', url: hook.url, secret: SECRET };
  await bob.request('events/subscribe', { name: 'board.merged', arguments: { board }, delivery });
  const body = JSON.stringify({ action: 'closed', pull_request: { merged: true, title: '#2 Mend the build' } });
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'pull_request',
    'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  };
  await server.fetch(new Request('http://localhost/hooks/github', { method: 'POST', body, headers }));
  await agent.call('board_remove', { board, card: 3 });
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: `${out}/team-${theme}.png` });
  for (const [name, kind] of [
    ['board', 'handle'],
    ['approval', 'approval'],
  ] as const) {
    const node = page.locator(`.node.${kind}`).first();
    if ((await node.count()) === 0) continue;
    await node.click();
    await page.waitForTimeout(1_500);
    await page.screenshot({ path: `${out}/team-${name}-${theme}.png` });
  }
  await page.close();
  await inspector.close();
  await server.close();
  await hook.close();
}
process.stdout.write(`${browsing.complaints.join('\n')}\n`);
await browsing.close();
