/** A bakery with events of every kind: types with listeners, callbacks that fail, schedules, messages and webhooks that were given up. */
import { assign, setup } from 'xstate';
import * as z from 'zod';
import type { Clock } from '../../src/core/kernel/clock.ts';
import { tell } from '../../src/features/machines/messages/tell.ts';
import type { ScheduleSlot } from '../../src/features/schedules/schedule-definition.ts';
import { createServer, type Server, type ServerOptions } from '../../src/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { github } from '../../src/webhooks.ts';
import { type Receiver, receiver, SECRET, subscription } from '../features/events/delivery/support.ts';
import { byGithub, SECRET as HOOK_SECRET } from '../features/hooks/support.ts';
import { until } from '../harness/wait.ts';

const HOOK = 'http://localhost/hooks/github';

/** An oven of the bakery: it tells a shop, and is tidied at night. */
const ovenMachine = setup({
  types: {
    context: {} as { tidied: readonly boolean[] },
    events: {} as { type: 'bake' } | { type: 'tidy'; scheduledFor: string; missed: number; manual?: true },
  },
}).createMachine({
  context: { tidied: [] },
  initial: 'warm',
  states: {
    warm: {
      on: {
        bake: { actions: tell('shop', 'lisbon', { type: 'bread' }) },
        tidy: { actions: assign({ tidied: ({ context, event }) => [...context.tidied, event.manual === true] }) },
      },
    },
  },
});

export interface Bakery {
  readonly server: Server;
  /** The slots that the handler of `inventory` got. */
  readonly slots: readonly ScheduleSlot[];
  /** The webhooks that the handler has processed; it throws while `closed`. */
  readonly pushes: readonly string[];
  closed: boolean;
  readonly works: Receiver;
  readonly fails: Receiver;
  emit(order: string): Promise<void>;
  /** Serves, subscribes, emits, and lets what fails fail. */
  begin(): Promise<void>;
  close(): Promise<void>;
}

/** @param clock of the server. Default: the real one */
export async function bakery(
  options: Partial<ServerOptions> = {},
  clock?: Clock & { advance?(ms: number): Promise<void> },
): Promise<Bakery> {
  const [works, fails] = [await receiver(), await receiver()];
  const server = createServer({
    ...{ name: 'bakery', version: '1.0.0', log: () => {}, ...(clock && { clock }) },
    events: { callbacks: { allow: [works.origin, fails.origin] } },
    ...options,
  });
  const slots: ScheduleSlot[] = [];
  const pushes: string[] = [];
  const paid = server.event('order.paid', {
    description: 'An order was paid.',
    input: z.object({ customer: z.string().optional() }),
    payload: z.object({ order: z.string().max(20), amount: z.number().min(0), customer: z.string().optional() }),
    match: () => true,
  });
  server.event('oven.hot', {
    description: 'An oven has reached its temperature.',
    ...{ by: 'oven', input: z.object({ oven: z.string() }), payload: z.object({ oven: z.string() }) },
  });
  server.machine('oven', ovenMachine, {
    ...{ key: { argument: 'oven' }, events: { bake: true }, keep: true },
    roles: { of: () => 'baker', baker: { events: '*' } },
    schedules: { tidy: { cron: '0 3 * * *', timeZone: 'Europe/Lisbon', event: 'tidy' } },
    view: ({ context }) => context,
  });
  server.schedule('inventory', { cron: '30 4 * * *', timeZone: 'Europe/Lisbon' }, (slot) => {
    slots.push(slot);
  });
  server.webhook('/hooks/github', {
    ...{ verify: github({ secret: HOOK_SECRET }), attempts: 1 },
    to({ id }) {
      if (stage.closed) throw new Error('the bakery is closed');
      pushes.push(id);
    },
  });
  const stage: Bakery = {
    ...{ server, slots, pushes, closed: true, works, fails },
    async emit(order) {
      await paid.emit({ order, amount: 4 });
    },
    async begin() {
      fails.answer = (post) => (post.body.type === 'verification' ? 200 : 410);
      const subscribe = async (principal: string, url: string, customer: string): Promise<void> => {
        const client = await connect(server, { auth: { principal }, deadlineMs: 60_000 });
        const more = { name: 'order.paid', arguments: { customer } };
        await client.modern('events/subscribe', subscription(url, more, SECRET));
      };
      await subscribe('ada', `${works.url}?token=zq7wxk3v9`, 'x');
      await subscribe('bob', `${fails.url}?token=zq7wxk3v9`, 'y');
      await stage.emit('o1');
      await until(() => works.answered > 0 && fails.answered > 0);
      await server.send('oven', 'north', { type: 'bake' });
      const body = '{"ref":"main","password":"hunter2"}';
      await server.fetch(new Request(HOOK, { method: 'POST', headers: byGithub(body), body }));
      await until(async () => {
        await clock?.advance?.(0);
        return (await server.deadLetters()).length === 1;
      });
    },
    async close() {
      await server.close();
      await works.close();
      await fails.close();
    },
  };
  return stage;
}
