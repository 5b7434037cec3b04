/**
 * Five tasks in an office of three services, each as a model does it from the texts of the tools alone: it searches, reads declarations,
 * and writes scripts of what it has read.
 */
import { type Client, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { suite } from '../../harness/door.ts';
import { textOf } from '../../harness/results.ts';
import { type Office, openOffice } from './office.ts';

const test = suite('tasks of code mode');

interface Desk {
  readonly office: Office;
  search(query: string): Promise<readonly string[]>;
  describe(...names: readonly string[]): Promise<string>;
  /** Runs a script, and returns its result. */
  run(code: string): Promise<unknown>;
  /** Runs a script, and returns the text of its failure. */
  fail(code: string): Promise<string>;
  /** The arguments that people were asked about. */
  readonly asked: string[];
}

/** The office of all tasks: its thread for scripts takes longer to start than a task. */
let office: Office;
test.before(async () => {
  office = await openOffice();
});
test.after(() => office.close());

/** @param denies a text in a question that is answered with a denial */
async function withDesk(use: (desk: Desk) => Promise<void>, denies = '\0'): Promise<void> {
  const asked: string[] = [];
  const client: Client = await connect(office.gateway, {
    elicit({ message }) {
      asked.push(message);
      return { decision: message.includes(denies) ? 'deny' : 'approve' };
    },
  });
  const call = (name: string, args: JsonObject) => client.call(name, args);
  try {
    await use({
      ...{ office, asked },
      search: async (query) => textOf(await call('search_functions', { query })).split('\n'),
      describe: async (...names) => textOf(await call('describe_functions', { names: [...names] })),
      async run(code) {
        const result = await call('run_code', { code });
        const text = textOf(result);
        assert.is(result.isError ?? false, false, text);
        return JSON.parse(text).result;
      },
      async fail(code) {
        const result = await call('run_code', { code });
        assert.is(result.isError, true, textOf(result));
        return textOf(result);
      },
    });
  } finally {
    await client.close();
  }
}

test('counts labels over all pages of a list', () =>
  withDesk(async ({ search, describe, run }) => {
    const [line = ''] = await search('list open issues');
    assert.is(line, 'tracker.issues_list({ state?, page?, per_page? }) – Lists issues, the newest first.');
    const text = await describe('tracker.issues_list');
    // All that the script needs: defaults, the size of a page, and the members of the result.
    assert.match(text, 'state?: "open" | "closed" | "all"; // Default: "open".');
    assert.match(text, 'per_page?: number; // At most 30. Default: 10.');
    assert.match(text, 'A page that is not full is the last.');
    assert.match(
      text,
      'Promise<{ result: { number: number; title: string; state: "open" | "closed"; labels: string[] }[] }>',
    );
    const counts = await run(`const counts = {};
for (let page = 1; ; page++) {
  const { result } = await tracker.issues_list({ page, per_page: 30 });
  for (const { labels } of result) for (const label of labels) counts[label] = (counts[label] ?? 0) + 1;
  if (result.length < 30) return counts;
}`);
    assert.equal(counts, { bug: 29, urgent: 9, question: 14 });
  }));

test('joins three services, and comments with the approval of its user', () =>
  withDesk(async ({ search, describe, run, office, asked }) => {
    assert.ok(
      (await search('comment on an issue'))[0]?.startsWith('tracker.issues_create_comment({ number, body }) !'),
    );
    assert.ok((await search('get an order')).some((line) => line.startsWith('shop.get_order({ id })')));
    assert.match(await describe('tracker.issues_create_comment'), 'args: { number: number; body: { body: string } }');
    const done = await run(`const { result } = await tracker.issues_list({ per_page: 30 });
const broken = result.filter(({ title }) => title.includes('arrived broken')).slice(0, 3);
return await Promise.all(broken.map(async ({ number, title }) => {
  const order = await shop.get_order({ id: Number(title.match(/\\d+/)[0]) });
  await tracker.issues_create_comment({ number, body: { body: \`Order \${order.id} is \${order.status}.\` } });
  return order.id;
}));`);
    assert.equal(done, [1000, 1006, 1012]);
    assert.equal(asked.length, 3);
    assert.equal(office.issues[6]?.comments, ['Order 1006 is delivered.']);
  }));

test('learns an unknown result first, then refunds, and continues after a denial', () =>
  withDesk(async ({ describe, run, office }) => {
    assert.match(await describe('shop.customers', 'shop.list_orders'), /customers\(\): Promise<unknown>/);
    await run('return (await shop.customers()).slice(0, 1)');
    await run('return (await shop.list_orders({ customer: "ada" })).orders.length');
    assert.match(
      await describe('shop.customers', 'shop.list_orders'),
      /customers\(\): Promise<\{ id: string; mail: string; since: number \}\[\]>; \/\/ as seen once[\s\S]*orders: \{ id: number; customer: string; cents: number; status: string \}\[\]/,
    );
    const results = await run(`const results = [];
for (const { id: customer } of await shop.customers()) {
  const { orders } = await shop.list_orders({ customer });
  for (const { id, cents, status } of orders)
    if (status === 'lost' && cents > 20000)
      try {
        await shop.refund({ id, reason: 'lost' });
        results.push(id);
      } catch (error) {
        results.push([id, error.name, error.carriedOut]);
      }
}
return results;`);
    assert.equal(results, [1042, [1049, 'ToolError', false], 1056]);
    assert.equal(office.refunds, [1042, 1056]);
  }, '1049'));

test('sends in parallel, and reports the one that fails', () =>
  withDesk(async ({ search, run, office }) => {
    assert.ok((await search('send an email'))[0]?.startsWith('mail.send({ to, subject, text }) !'));
    const report = await run(`const customers = await shop.customers();
const sent = await Promise.allSettled(
  customers.map(({ mail: to }) => mail.send({ to, subject: 'Hello', text: 'We moved.' })),
);
return sent.map(({ status, reason }, at) => status === 'fulfilled' ? customers[at].id : reason.tool + ': ' + reason.message);`);
    assert.equal(report, ['ada', 'bob', 'mail.send: 550 mailbox unavailable', 'dora']);
    assert.is(office.mails.length, 3);
  }));

test('asks its user in the middle, and closes issues only after the answer', () =>
  withDesk(async ({ run, fail, describe, office }) => {
    // A wrong name, a wrong argument and a script in a fence, as models write them.
    assert.match(
      await fail('return await tracker.list_issues({})'),
      'line 1, column 14: tracker.list_issues is no function. Did you mean tracker.issues_list',
    );
    assert.match(await fail('return await shop.get_order({ order: 1 })'), 'shop.get_order(args: { id: number })');
    assert.match(await describe('tracker.update_issue'), 'Did you mean tracker.issues_update');
    const closed = await run(`\`\`\`js
async () => {
  const { result } = await tracker.issues_list({ per_page: 30 });
  const urgent = result.filter(({ labels }) => labels.includes('urgent')).slice(0, 2);
  const answer = await ask(\`Close \${urgent.length} issues?\`, {
    type: 'object', properties: { decision: { type: 'string' } }, required: ['decision'],
  });
  if (answer.decision !== 'approve') return [];
  for (const { number } of urgent) await tracker.issues_update({ number, body: { state: 'closed' } });
  return urgent.map(({ number }) => number);
}
\`\`\``);
    assert.equal(closed, [1, 6]);
    assert.is(office.issues[5]?.state, 'closed');
  }));
