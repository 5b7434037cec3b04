/** What the simulated server offers: tools that work, wait, ask, take steps, fail and keep a ledger, each of which says which call it served. */
import * as z from 'zod';
import type { JournalEvent } from '../../../src/core/store/store.ts';
import { type Context, type Server, ToolError } from '../../../src/index.ts';
import { chartMachine } from './chart.ts';
import type { GenerationClock } from './clock.ts';
import type { SimulatedStore } from './disk.ts';
import { tallyMachine, tallyOptions } from './handles.ts';

/** The arguments of every tool: the nonce names the call, the canary says who made it and is told to nobody else. */
export interface ToolArgs {
  readonly nonce: string;
  readonly canary: string;
  readonly ms: number;
  /** The handler heeds its signal. */
  readonly heeds: boolean;
}

/** What the tools tell the world that they live in. */
export interface ToolWorld {
  readonly clock: GenerationClock;
  readonly store: SimulatedStore;
  /** Steps run although they are recorded: the simulator is to find it. */
  readonly forgets: boolean;
  /** A handler begins for this principal. @returns is called when it ends */
  running(args: ToolArgs, ctx: Context): () => void;
  /** A step's function runs. */
  ran(nonce: string, step: string): void;
  /** A handler goes on after a step: from now on it is recorded. */
  recorded(nonce: string, step: string): void;
  violated(what: string): void;
}

const ARGS = {
  type: 'object',
  properties: {
    nonce: { type: 'string' },
    canary: { type: 'string' },
    ms: { type: 'integer' },
    heeds: { type: 'boolean' },
  },
  required: ['nonce', 'canary', 'ms', 'heeds'],
} as const;

const ANSWER = z.object({ word: z.string() });

/** The actor of the ledger in the store: written by the author's own hand, through the port. */
export const LEDGER = 'server/ledger';

export function offerTools(server: Server, world: ToolWorld): void {
  const tool = (
    name: string,
    options: { readonly task?: 'allowed' | 'required' },
    run: (args: ToolArgs, ctx: Context) => Promise<string>,
  ): void => {
    server.tool(name, { ...options, input: ARGS }, async (args, ctx) => {
      const ended = world.running(args, ctx);
      try {
        return await run(args, ctx);
      } finally {
        ended();
      }
    });
  };
  const said = ({ nonce, canary }: ToolArgs, what: string): string => `${nonce} ${canary} ${what}`;
  const step = ({ nonce }: ToolArgs, name: string, ctx: Context): Promise<string> =>
    taken(nonce, name, (run) => ctx.step(name, run));
  const taken: Parameters<typeof chartMachine>[1] = async (nonce, name, keep) => {
    const run = async (): Promise<string> => {
      world.ran(nonce, name);
      await sleep(world, 3);
      return `${name} of ${nonce}`;
    };
    const given = world.forgets ? await run() : await keep(run);
    world.recorded(nonce, name);
    if (given !== `${name} of ${nonce}`) world.violated(`I4: the step ${name} of ${nonce} gave "${given}"`);
    return given;
  };
  const ask = async (args: ToolArgs, ctx: Context, key: string): Promise<string> => {
    const asked = await ctx.ask({ [key]: { elicit: { message: `Which word, for ${args.nonce}?`, schema: ANSWER } } });
    const answer = asked[key];
    if (answer?.status !== 'accepted') return String(answer?.status);
    const { word } = ANSWER.parse(answer.content);
    if (word !== wordFor(args.canary)) world.violated(`I4: ${args.nonce} was answered "${word}"`);
    return `accepted ${word}`;
  };

  tool('echo', {}, async (args) => said(args, 'echoed'));
  tool('slow', {}, async (args, ctx) => {
    for (let part = 1; part <= 4; part += 1) {
      ctx.progress(part, 4, `part ${part} of ${args.nonce} ${args.canary}`);
      await sleep(world, args.ms / 4, args.heeds ? ctx.signal : undefined);
    }
    return said(args, 'slept');
  });
  tool('ask', {}, async (args, ctx) => said(args, await ask(args, ctx, 'word')));
  tool('pay', {}, async (args, ctx) => {
    const found = await step(args, 'look up', ctx);
    const first = await ask(args, ctx, 'first');
    const paid = await step(args, 'pay', ctx);
    await sleep(world, args.ms, args.heeds ? ctx.signal : undefined);
    const second = await ask(args, ctx, 'second');
    return said(args, `${found}, ${first}, ${paid}, ${second}`);
  });
  for (const [name, task] of [
    ['job', 'required'],
    ['maybe', 'allowed'],
  ] as const) {
    tool(name, { task }, async (args, ctx) => {
      ctx.progress(1, 3, `${args.nonce} has begun ${args.canary}`);
      const begun = await step(args, 'begin', ctx);
      await sleep(world, args.ms, args.heeds ? ctx.signal : undefined);
      if (args.ms % 3 === 0) await ask(args, ctx, 'word');
      ctx.progress(2, 3);
      const ended = await step(args, 'end', ctx);
      return said(args, `${begun}, ${ended}`);
    });
  }
  server.tool('chart', { input: ARGS, machine: chartMachine(world, taken, said, wordFor) });
  tool('trip', {}, async (args) => {
    throw new ToolError(said(args, 'tripped'));
  });
  const ledger = new Ledger(world.store);
  tool('deposit', {}, async (args) => {
    await sleep(world, args.ms);
    return said(args, `entry ${await ledger.append(args.nonce)}`);
  });
  server.machine('tally', tallyMachine, tallyOptions);
  for (let n = 0; n < 3; n += 1) server.resource(`doc://${n}`, {}, () => `document ${n}`);
}

/** The word with which whoever has this canary answers. */
export function wordFor(canary: string): string {
  return `word-${canary}`;
}

/** Waits in the time of the process: one that is killed waits for ever. */
function sleep({ clock }: ToolWorld, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const give = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener('abort', give);
      resolve();
    });
    signal?.addEventListener('abort', give, { once: true });
  });
}

/** A numbered list of entries, each durable before its number is told. */
class Ledger {
  readonly #store: SimulatedStore;
  #turn: Promise<unknown> = Promise.resolve();
  #last: number | undefined;

  constructor(store: SimulatedStore) {
    this.#store = store;
  }

  /** @returns the number of the entry. @throws {StoreError} */
  append(entry: string): Promise<number> {
    const turn = this.#turn.then(() => this.#append(entry));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #append(data: string): Promise<number> {
    const seq = 1 + (this.#last ?? (await this.#read()).at(-1)?.seq ?? 0);
    // Where it fails nobody can know whether it was kept: what is read next is what holds.
    this.#last = undefined;
    await this.#store.commit([{ type: 'event', actor: LEDGER, stream: '', seq, kind: 'entry', data }]);
    this.#last = seq;
    return seq;
  }

  #read(): Promise<readonly JournalEvent[]> {
    return this.#store.events(LEDGER, '', 0, Number.MAX_SAFE_INTEGER);
  }
}
