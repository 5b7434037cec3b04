/** `examples/order` is killed at random moments while it sells: no event that it acknowledged is lost, each order is charged once, and what waits fires. */
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { call } from '../../core/http/modern.ts';
import { conclusive, fullOnly, suite, timeLimit } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { elapse, until } from '../../harness/wait.ts';
import { type OrderShop, openShop } from './order-shop.ts';

fullOnly('kills the example; its quick test is order.test.ts');

const KILLS = atScale({ quick: 2, full: 2, proof: 100 });
/** How many requests a process answers before it is killed, at most, and how many milliseconds it then still has. */
const LIFE = { answers: 40, ms: 15 };
/** How many orders are on their way at once. */
const BUYERS = 8;
/** How long a cart waits, by default. */
const PATIENCE_MS = 1_800_000;

timeLimit(60_000 + KILLS * 30_000);
const test = suite('examples/order, killed');

const CAN_BE_ASKED = { meta: { [META.clientCapabilities]: { elicitation: {} } } };

type Fields = Readonly<Record<string, unknown>>;

interface Order {
  readonly handle: string;
  readonly customer: string;
  /** What was acknowledged. */
  readonly items: { readonly sku: string; readonly quantity: number }[];
  /** It was acknowledged that it is being paid, or was. */
  paid: boolean;
}

/** Requests that were answered, questions too. */
let answers = 0;

/** One request, sent again with the same key until it is answered; questions are answered on the way. */
async function ask(url: string, name: string, args: Fields): Promise<Fields> {
  let more: Fields = {};
  for (;;) {
    let result: Fields | undefined;
    try {
      const answer = await call(url, name, args, { ...CAN_BE_ASKED, params: more });
      const message = Object(JSON.parse(await answer.text()));
      result = message.result;
      // Its answer was brought before, to a process that is gone: the call itself is sent again.
      if (!result) more = {};
    } catch {
      // It is dead, or about to die.
      more = {};
    }
    if (!result) {
      await elapse(10, 'another process starts');
      continue;
    }
    answers += 1;
    if (result.resultType !== 'input_required') return result;
    const responses = Object.keys(Object(result.inputRequests)).map(
      (key) => [key, { action: 'accept', content: { agreed: true } }] as const,
    );
    more = { requestState: result.requestState, inputResponses: Object.fromEntries(responses) };
  }
}

function dataOf({ structuredContent, isError, content }: Fields): Fields {
  assert.not.ok(isError, JSON.stringify(content));
  return Object(structuredContent);
}

/** Buys one thing after the other, and writes down what was acknowledged. Every fourth cart is left where it stands. */
async function buyer(url: string, id: number, orders: Order[], selling: () => boolean): Promise<void> {
  for (let round = 0; selling(); round += 1) {
    const customer = `c${id}-${round}`;
    const make = { customer, idempotencyKey: `${customer} create` };
    const order: Order = {
      handle: String(dataOf(await ask(url, 'order_create', make)).handle),
      customer,
      items: [],
      paid: false,
    };
    const { handle } = order;
    orders.push(order);
    for (const quantity of [1, 2, 3]) {
      const item = { sku: 'tea', quantity };
      dataOf(await ask(url, 'order_add_item', { handle, ...item, idempotencyKey: `${customer} ${quantity}` }));
      order.items.push(item);
    }
    if ((id + round) % 4 === 0) continue;
    const { state } = Object(
      (await ask(url, 'order_checkout', { handle, idempotencyKey: `${customer} pay` })).structuredContent,
    );
    order.paid = ['paying', 'packing', 'shipped'].includes(String(state));
  }
}

/** Looks until it has ended. */
async function ended(url: string, handle: string): Promise<Fields> {
  let now: Fields = {};
  await until(async () => {
    now = dataOf(await ask(url, 'order_get', { handle }));
    return now.status !== 'active';
  }, 'the order to end');
  return now;
}

/** Keeps the shop open: whenever its process has ended, another one is started. */
async function keepOpen(shop: OrderShop) {
  let serving = shop.serve();
  const { href, port } = (await serving).url;
  let over = false;
  let laterMs = 0;
  const kept = (async () => {
    for (;;) {
      await (await serving).gone;
      if (over) return;
      serving = shop.serve(port, laterMs);
    }
  })();
  const kill = async (): Promise<void> => (await serving).kill();
  return {
    url: href,
    kill,
    /** Kills the process. The clocks of those after it are ahead. */
    later(ms: number): Promise<void> {
      laterMs = ms;
      return kill();
    },
    async close() {
      over = true;
      shop.close();
      await kept;
    },
  };
}

async function sell(url: string, kill: () => Promise<void>): Promise<readonly Order[]> {
  const orders: Order[] = [];
  let selling = true;
  const buyers = Array.from({ length: BUYERS }, (_, id) => buyer(url, id, orders, () => selling));
  for (let kills = 0; kills < KILLS; kills += 1) {
    const enough = answers + 1 + Math.random() * LIFE.answers;
    await until(() => answers >= enough, 'answers');
    await elapse(Math.random() * LIFE.ms, 'the life of a process');
    await kill();
  }
  selling = false;
  await Promise.all(buyers);
  return orders;
}

test(`R-01: killed ${KILLS} times: no acknowledged event is lost, each order is charged once, and each delay fires`, async () => {
  const shop = openShop();
  const { url, kill, later, close } = await keepOpen(shop);
  try {
    const orders = await sell(url, kill);
    await later(PATIENCE_MS);
    const shipped: string[] = [];
    for (const { handle, customer, items, paid } of orders) {
      const { state, view } = await ended(url, handle);
      conclusive(() =>
        assert.equal(Object(view).items.slice(0, items.length), items, `order ${handle} has what was acknowledged`),
      );
      if (paid) assert.is(state, 'shipped', `order ${handle}`);
      if (state === 'shipped') shipped.push(customer);
      else assert.is(state, 'cancelled', `order ${handle}`);
    }
    assert.ok(
      shipped.length > 0 && shipped.length < orders.length,
      `${shipped.length} of ${orders.length} were shipped`,
    );
    assert.equal(
      shop
        .charges()
        .map((line) => line.split(' ')[1])
        .sort(),
      shipped.sort(),
    );
  } finally {
    await close();
  }
});
