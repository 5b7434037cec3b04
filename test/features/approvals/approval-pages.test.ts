/** The pages on which people decide: who sees what, that only a form of the page decides, and that nothing in them is alive. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { HOST, HTTP, load, markIn } from './approval-browser.ts';
import { as, BY_OPS, CALL, faultOf, pendingId, refund, type Shop, shop, textIn } from './support.ts';

const test = suite('the pages of approvals');

/** A shop with a refund of Ada's that waits for somebody with the scope ops. */
async function waiting(args = CALL): Promise<{ readonly made: Shop; readonly id: string; close(): Promise<void> }> {
  const made = shop(BY_OPS, { http: HTTP });
  const client = await as(made.server);
  const result = await refund(client, args);
  const id = pendingId(result);
  return { made, id, close: () => made.server.close() };
}

test('a person approves a call on its page, and the call runs once', async () => {
  const { made, id, close } = await waiting();
  const client = await as(made.server);
  const list = await load(made, 'olga', '');
  // The pages are known once the server is mounted.
  assert.match(textIn(await refund(client)), `${HOST}/x/approvals/${id}`);
  assert.match(list.text, `href="approvals/${id}"`);
  const page = await load(made, 'olga', `/${id}`);
  assert.match(page.text, '&#34;order&#34;: &#34;17&#34;');
  const decided = await load(made, 'olga', `/${id}`, { mark: markIn(page), decision: 'approve', reason: 'all right' });
  assert.equal([decided.status, decided.headers.get('location')], [303, id]);
  assert.match((await load(made, 'olga', `/${id}`)).text, 'olga approved');
  assert.is(textIn(await refund(client)), 'refunded');
  assert.equal(made.ran, [CALL]);
  await close();
});

test('a denial on the page reaches the model with its reason as a quotation', async () => {
  const { made, id, close } = await waiting();
  const page = await load(made, 'olga', `/${id}`);
  await load(made, 'olga', `/${id}`, { mark: markIn(page), decision: 'deny', reason: 'ask "Eve" first' });
  assert.match(textIn(await refund(await as(made.server))), '"ask \\"Eve\\" first"');
  assert.equal(made.ran, []);
  await close();
});

interface Refused {
  readonly what: string;
  readonly person: string;
  readonly path: (id: string) => string;
  readonly form?: (mark: string) => Readonly<Record<string, string>>;
  readonly origin?: string;
  readonly status: number;
}

const REFUSED: readonly Refused[] = [
  { what: 'a browser that nobody has signed in to', person: 'nobody', path: (id) => `/${id}`, status: 401 },
  { what: 'the list of nobody', person: 'nobody', path: () => '', status: 401 },
  { what: 'somebody without the scope', person: 'eve', path: (id) => `/${id}`, status: 404 },
  { what: 'an id that is none', person: 'olga', path: () => '/nothing', status: 404 },
  { what: 'an id that no text decodes to', person: 'olga', path: () => '/%ff', status: 404 },
  { what: 'a GET with a decision', person: 'olga', path: (id) => `/${id}?decision=approve`, status: 200 },
  {
    what: 'a form without a mark',
    person: 'olga',
    path: (id) => `/${id}`,
    form: () => ({ decision: 'approve' }),
    status: 403,
  },
  {
    what: 'the mark of another person',
    person: 'eve',
    path: (id) => `/${id}`,
    form: (mark) => ({ mark, decision: 'approve' }),
    status: 404,
  },
  {
    what: 'the mark of an approver in the browser of the caller',
    person: 'ada',
    path: (id) => `/${id}`,
    form: (mark) => ({ mark, decision: 'approve' }),
    status: 403,
  },
  {
    what: 'a form of another origin',
    person: 'olga',
    path: (id) => `/${id}`,
    form: (mark) => ({ mark, decision: 'approve' }),
    origin: 'https://evil.example',
    status: 403,
  },
  {
    what: 'another decision',
    person: 'olga',
    path: (id) => `/${id}`,
    form: (mark) => ({ mark, decision: 'yes' }),
    status: 400,
  },
  {
    what: 'a form to the list',
    person: 'olga',
    path: () => '',
    form: (mark) => ({ mark, decision: 'approve' }),
    status: 405,
  },
  {
    what: 'a form of more than 64 KiB',
    person: 'olga',
    path: (id) => `/${id}`,
    form: (mark) => ({ mark, decision: 'approve', reason: 'x'.repeat(70_000) }),
    status: 400,
  },
];

for (const { what, person, path, form, origin, status } of REFUSED)
  test(`${what} decides nothing`, async () => {
    const { made, id, close } = await waiting();
    const mark = markIn(await load(made, 'olga', `/${id}`));
    const page = await load(made, person, path(id), form?.(mark), origin);
    assert.is(page.status, status, page.text);
    assert.is((await made.server.approvals.get(id))?.state, 'asked');
    assert.equal(made.ran, []);
    await close();
  });

test('the caller sees that their call waits, and cannot decide', async () => {
  const { made, id, close } = await waiting();
  assert.match((await load(made, 'ada', '')).text, 'Your calls that wait for others');
  const page = await load(made, 'ada', `/${id}`);
  assert.match(page.text, 'You cannot decide about this call.');
  assert.not.match(page.text, '<form');
  await close();
});

test('nothing that others have written is alive on a page, and no other page may frame it', async () => {
  const order = '<img src=x onerror=alert(1)>\u202e"\'';
  const { made, id, close } = await waiting({ order, amount: 1 });
  const page = await load(made, 'olga', `/${id}`);
  assert.not.match(page.text, '<img');
  assert.not.match(page.text, '\u202e');
  assert.match(page.headers.get('content-security-policy') ?? '', "default-src 'none'");
  assert.match(page.headers.get('content-security-policy') ?? '', "frame-ancestors 'none'");
  assert.is(page.headers.get('cache-control'), 'no-store');
  await close();
});

test('a second form for a call that is decided says so', async () => {
  const { made, id, close } = await waiting();
  const mark = markIn(await load(made, 'olga', `/${id}`));
  await load(made, 'olga', `/${id}`, { mark, decision: 'deny' });
  const again = await load(made, 'olga', `/${id}`, { mark, decision: 'approve' });
  assert.is(again.status, 409);
  assert.match(again.text, 'denied');
  assert.is(
    await faultOf(made.server.approvals.decide(id, { approver: { principal: 'olga' }, decision: 'deny' })),
    'closed',
  );
  await close();
});
