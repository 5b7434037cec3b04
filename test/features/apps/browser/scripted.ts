/** A scripted order: its page and its server, for tests that need each case of the page and no server. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { z } from 'zod';
import { orderMachine, SKU } from '../../../../examples/order/order.ts';
import { nodesOf, readChart } from '../../../../src/core/kernel/charts/chart.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { isObject } from '../../../../src/core/protocol/json.ts';
import { chartForView } from '../../../../src/features/apps/view-chart.ts';
import type { MachinePage } from '../../../../src/features/apps/view-definition.ts';
import type { Translations } from '../../../../src/features/apps/view-texts.ts';
import { formFieldsOf } from '../../../../src/features/asking/form-model.ts';
import { pagePictureOf } from '../../../../src/features/charts/chart-picture.ts';

const fields = (schema: z.ZodType) =>
  formFieldsOf(z.toJSONSchema(schema, { io: 'input' }), (each) => (isObject(each) ? each : undefined));

const chart = readChart(orderMachine);

export const DEFINITION: MachinePage = {
  kind: 'machine',
  address: 'handle',
  server: 'shop',
  title: 'Order',
  machine: 'order',
  states: nodesOf(chart).flatMap(({ path }) => (path === '' ? [] : [path])),
  texts: { title: 'Order', labels: { reasons: { filled: 'Add something first.' } } },
  translations: {},
  events: [
    {
      name: 'add_item',
      tool: 'order_add_item',
      title: 'Add item',
      fields: fields(z.object({ sku: SKU, quantity: z.number().int().min(1).default(1) })),
      confirm: false,
    },
    { name: 'checkout', tool: 'order_checkout', title: 'Checkout', fields: [], confirm: false },
    {
      name: 'cancel',
      tool: 'order_cancel',
      title: 'Cancel',
      fields: fields(z.object({ reason: z.string().optional() })),
      confirm: true,
    },
    { name: 'end', tool: 'order_end', title: 'End', fields: [], confirm: true, always: true },
  ],
  watch: 'troupe_watch',
  answer: 'troupe_answer',
  get: 'order_get',
  uri: 'troupe://order/{handle}',
};

/** The page of a definition. @param svg the picture of its chart */
export function pageOf(definition: object, kind: string, svg = ''): string {
  const template = readFileSync(fileURLToPath(new URL(`../../../../dist/apps/${kind}.html`, import.meta.url)), 'utf8');
  return template
    .replace('"TROUPE-VIEW"', () => JSON.stringify(definition).replaceAll('<', '\\u003c'))
    .replace('<!--TROUPE-CHART-->', () => svg);
}

export async function orderPage(translations: Translations = {}): Promise<string> {
  const { drawn, widest } = chartForView(chart, {
    titles: new Map(DEFINITION.events.map(({ name }) => [name, undefined])),
    texts: [DEFINITION.texts, ...Object.values(translations)],
  });
  return pageOf({ ...DEFINITION, translations }, 'machine', await pagePictureOf(drawn, systemClock, widest));
}

/** An order as the server shows it to a view. */
export function order(changes: object = {}) {
  return {
    handle: 'V1StGXR8_Z5jdHi6B-myT',
    state: 'cart',
    status: 'active',
    view: {
      customer: 'Ada',
      items: [
        { sku: 'tea', quantity: 2 },
        { sku: 'kettle', quantity: 1 },
      ],
      total: 38,
    },
    accepts: ['add_item', 'checkout', 'cancel'],
    asks: [],
    blocked: [],
    timers: [{ label: 'patience', at: new Date(Date.now() + 1_500_000).toISOString(), lasts: 1_800_000 }],
    version: 3,
    created: new Date(Date.now() - 60_000).toISOString(),
    expires: new Date(Date.now() + 86_400_000).toISOString(),
    now: new Date().toISOString(),
    ...changes,
  };
}

export type Order = ReturnType<typeof order>;

/** The failed result of a call, with a text that no person should read. */
export const FOR_MODEL = {
  content: [{ type: 'text' as const, text: 'guard "filled" rejected it. Accepted next: order_pay (sku: string)' }],
  isError: true,
};

/** A server that a test directs: it answers the watch when the order changes. */
export class ScriptedServer {
  /** The calls that are no watch. */
  readonly calls: { readonly name: string; readonly arguments: unknown; readonly meta: unknown }[] = [];
  /** Answers a call; by default with the order. */
  answer: (name: string, args: Readonly<Record<string, unknown>>) => object = () => this.result();
  /** The error of the host while it does not reach the server. */
  lost: Error | undefined;
  /** The order has expired. */
  gone = false;
  #order: Order = order();
  #waiting: (() => void) | undefined;

  readonly serve = (bridge: AppBridge): void => {
    bridge.oncalltool = async ({ name, arguments: args = {}, _meta }) => {
      if (name !== 'troupe_watch') {
        this.calls.push({ name, arguments: args, meta: _meta });
        if (this.lost) throw this.lost;
        return this.answer(name, args) as never;
      }
      if (this.lost) throw this.lost;
      if (args.version === this.#order.version)
        await new Promise<void>((resolve) => {
          this.#waiting = resolve;
        });
      if (this.lost) throw this.lost;
      if (this.gone) return { ...FOR_MODEL, _meta: { 'dev.troupe/view': { reason: 'expired' } } };
      return { content: [], structuredContent: { changed: true, ...this.#order } } as never;
    };
  };

  /** The result of a tool of the machine. */
  result(): object {
    const { timers: _, now: __, blocked: ___, ...shown } = this.#order;
    return {
      content: [{ type: 'text', text: 'order' }],
      structuredContent: shown,
      _meta: { 'dev.troupe/view': { key: 'k', live: this.#order } },
    };
  }

  /** Changes the order, also for a view that waits. */
  change(changes: object): void {
    this.#order = order({
      ...this.#order,
      now: new Date().toISOString(),
      version: this.#order.version + 1,
      ...changes,
    });
    this.#waiting?.();
  }
}
