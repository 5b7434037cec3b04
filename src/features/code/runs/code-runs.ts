/** The runs of scripts of a server: begins them, finds them again, and takes up those of an earlier process. */
import { randomInt } from 'node:crypto';
import type { Context } from '../../../core/execution/context.ts';
import { earlierSteps, requestContextOf } from '../../../core/execution/request-context.ts';
import { failed } from '../../../core/execution/tool-result.ts';
import { isExcess } from '../../../core/kernel/quota.ts';
import { sha256 } from '../../../core/kernel/sha256.ts';
import type { CellHolder } from '../../../core/messages/cell-holder.ts';
import { cellIn, isOfCells } from '../../../core/protocol/cell.ts';
import { heapBytes } from '../../../core/protocol/heap.ts';
import { isJsonObject, type JsonObject, shortened } from '../../../core/protocol/json.ts';
import { ANONYMOUS } from '../../../core/protocol/principals.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { ActorRow } from '../../../core/store/store.ts';
import { approvals } from '../../approvals/approvals.feature.ts';
import { asking } from '../../asking/asking.feature.ts';
import { continuesElsewhere } from '../../asking/asking-context.ts';
import type { CodeOptions } from '../code-options.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import type { Script } from '../sandbox/script.ts';
import { CallerRuns, isSameCaller } from './caller-runs.ts';
import { effectCondition } from './effects.ts';
import { RunJournal, type StoredCaller } from './run-journal.ts';
import type { Departure, ScriptEngine } from './run-messages.ts';
import { lostResult, pausedResult, type RunResult, resultOf, type WholeResult } from './run-result.ts';
import { actorOfRun, isOver, resultUri, runOf, runsAlone, statusInRow, statusOfRow } from './run-rows.ts';
import { type ScriptRun, spawnRun } from './script-run.actor.ts';

export interface CodeRunsOptions {
  readonly core: Core;
  readonly engine: ScriptEngine;
  /** The name of their rows in the store: servers of one program may share it, and each takes up its own runs. */
  readonly name: string;
  readonly settings?: CodeOptions | undefined;
  /** The functions of a caller whose run continues without a request. */
  functionsOf(caller: StoredCaller): Promise<CallableFunctions>;
}

/** The step of a call that remembers its run, so that the call finds it again in another process. */
const STEP = 'io.troupe/run';
/** The step after which the script may have done something: without its run, it does not begin again. */
const BEGUN = 'io.troupe/run begun';
const DEFAULTS = {
  waitMs: 20_000,
};
/** The bytes of a run besides its script and the results of its calls. */
const RUN_BYTES = 16_384;
/** Rows in one read of the store. */
const PAGE = 1_000;

/** A run in memory. */
interface LiveRun {
  readonly run: ScriptRun;
  readonly caller: StoredCaller;
  readonly script: Script;
}

/** A run that has ended. */
interface EndedRun {
  readonly caller: StoredCaller;
  readonly result: RunResult;
}

export class CodeRuns implements CellHolder {
  readonly #options: CodeRunsOptions;
  readonly #live = new Map<string, LiveRun>();
  readonly #ended = new Map<string, EndedRun>();
  /** The runs that are being read from the store. */
  readonly #loading = new Map<string, Promise<LiveRun | EndedRun | undefined>>();
  readonly #counted: Readonly<Record<'call' | 'run', (how: string) => void>>;
  readonly #callerRuns: CallerRuns;
  /** The ids of runs that continue by themselves, until the server serves. */
  #taken: string[] = [];
  #serves = false;

  constructor(options: CodeRunsOptions) {
    this.#options = options;
    const { core, name } = options;
    const { metrics } = core.system;
    this.#callerRuns = new CallerRuns({ core, name, live: this.#live });
    const label = 'troupe.state';
    this.#counted = {
      run: metrics.counter('troupe.code.runs', '{run}', 'Runs of scripts that have ended, by their end.', label),
      call: metrics.counter('troupe.code.calls', '{call}', 'Calls of scripts that have ended, by their end.', label),
    };
    metrics.gauge(
      'troupe.code.open',
      '{run}',
      'Runs of scripts at this node that have not ended.',
      () => this.#live.size,
    );
    if (this.#effects === 'approve') core.service(approvals).demands(effectCondition(core.elements.catalogues.tools));
  }

  get #effects(): 'approve' | 'allow' | 'deny' {
    return this.#options.settings?.effects ?? 'approve';
  }

  /** Number of runs in memory that have not ended. */
  get size(): number {
    return this.#live.size;
  }

  /** Runs a script, or waits for a run that was begun earlier. */
  async run(
    args: { readonly code: string } | { readonly resume: string },
    ctx: Context,
    functions: CallableFunctions,
  ): Promise<CallToolResult> {
    const context = requestContextOf(ctx);
    const tool = 'name' in context.first.operation ? context.first.operation.name : 'run_code';
    if ('resume' in args) {
      if (args.resume === '') return this.#callerRuns.list(callerOf(ctx));
      const found = await this.#find(args.resume);
      if (!found || !isOwner(found.caller, callerOf(ctx)))
        return failed(
          `There is no run ${shortened(args.resume, 40)} of this caller that can be continued. It never existed, or its time is over. Run a script with { "code": … }.`,
        );
      return this.#attach(args.resume, tool, found, ctx, functions);
    }
    const { limits } = this.#options.core;
    if (args.code.length > limits.codeLength)
      return failed(
        `The script has ${args.code.length} characters, and at most ${limits.codeLength} are possible. Nothing of it has run. Write less: loops instead of repeated lines, and no data in the text.`,
      );
    // A call that runs again knows its run.
    const lost = earlierSteps(ctx) ? undefined : await this.#callerRuns.withScript(callerOf(ctx), args.code);
    if (lost) return lostResult(lost, tool);
    const id = await ctx.step(STEP, () => this.#newId(ctx));
    const found = await this.#find(id);
    if (!found && earlierSteps(ctx)?.[BEGUN] !== undefined)
      return failed(
        'The run of this script is gone: its process ended without a durable store, or its time is over. It is not known what it has done. Find out before you run it again.',
      );
    const run = found ?? (await this.#begin(id, args.code, tool, ctx, functions));
    return this.#attach(id, tool, run, ctx, functions);
  }

  /** In the cell of the interactive request, so that the node to which its client returns has the run, too. */
  #newId(ctx: Context): string {
    const { core } = this.#options;
    const context = requestContextOf(ctx);
    const { first } = context;
    if (!core.store.durable) return core.system.ids.within(first.client.session?.id, first.exchange?.cell);
    const { interactive } = core.service(asking);
    const identity = interactive.identityOf(interactive.interact(first, context));
    return core.system.ids.within(identity?.id ?? first.client.session?.id, first.exchange?.cell);
  }

  async #begin(
    id: string,
    code: string,
    tool: string,
    ctx: Context,
    functions: CallableFunctions,
  ): Promise<LiveRun | CallToolResult> {
    const { core } = this.#options;
    const { limits, quotas, system, store } = core;
    const caller = callerOf(ctx);
    const own = [...this.#live.values()].filter((each) => isSameCaller(each.caller, caller));
    const live = own.filter(({ run }) => !run.state().startsWith('waiting'));
    if (live.length >= limits.codeLiveRuns)
      return failed(
        `The script did not run: ${live.length} scripts of this caller run already (the server's option is limits.codeLiveRuns). Wait until one has ended, or do the work in one script.`,
      );
    if (own.length >= limits.codeOpenRuns)
      return failed(
        `The script did not run: ${own.length} scripts of this caller wait for people or times (the server's option is limits.codeOpenRuns). Continue those first with resume.`,
      );
    const session = requestContextOf(ctx).first.client.session?.id;
    const memory = quotas.retained.reserve(caller.principal, RUN_BYTES + heapBytes(code), session);
    if (isExcess(memory)) return failed(`The script did not run: ${memory.message}. Retry later.`);
    const startedAt = system.clock.date();
    const script: Script = { code, seed: randomInt(2 ** 32), startedAt, groups: functions.groups };
    const begun = { type: 'begun', ...script, tool, engine: this.#options.engine.id, caller } as const;
    const expires = startedAt + limits.codeOpenMs;
    const row = (): ActorRow => this.#row(id, caller, startedAt, expires);
    const journal = new RunJournal(store, actorOfRun(id), row, limits.codeJournalLength);
    try {
      await journal.append([begun]);
      await ctx.step(BEGUN, () => true);
    } catch (error) {
      memory.release();
      const incident = system.incident('beginning a run of a script', error);
      return failed('The script did not run: the server could not store its beginning. Retry later.', incident);
    }
    return this.#spawn(id, { begun, script, tool, caller, journal, before: [], memory });
  }

  #spawn(
    id: string,
    given: Pick<
      Parameters<typeof spawnRun>[0],
      'begun' | 'script' | 'tool' | 'caller' | 'journal' | 'before' | 'memory'
    >,
  ): LiveRun {
    const { core, engine, functionsOf, settings } = this.#options;
    const { caller, memory } = given;
    const { waitMs = DEFAULTS.waitMs } = settings ?? {};
    const run = spawnRun({
      ...given,
      ...{ core, engine, id, approvals: core.service(approvals) },
      settings: { effects: this.#effects, waitMs },
      functions: () => functionsOf(caller),
      counted: (what, how) => this.#counted[what](how),
      keeps: (length) => this.#keeps(id, caller, length),
      gone: (result) => {
        memory.release();
        if (this.#live.get(id) === live) this.#live.delete(id);
        run.actor.stop('it has ended');
        // A client may ask again whose response was lost.
        if (result && !core.store.durable) this.#remember(id, { caller, result });
      },
    });
    const live = { run, caller, script: given.script };
    this.#live.set(id, live);
    run.actor.mailbox.send({ type: 'begin' });
    return live;
  }

  /** Whole results count as memory of their callers as long as they can be read, wherever they are stored. */
  #keeps(id: string, { principal }: StoredCaller, length: number): WholeResult | undefined {
    const { quotas, system, limits } = this.#options.core;
    const bytes = quotas.retained.reserve(principal, RUN_BYTES + 2 * length);
    if (isExcess(bytes)) return undefined;
    system.clock.after(limits.askMs, () => bytes.release());
    return { uri: resultUri(id), ttlMs: limits.askMs };
  }

  /** The whole result of a run, as JSON; undefined if this caller has no such run, or its time is over. */
  async wholeResult(id: string, ctx: Context): Promise<string | undefined> {
    const { store } = this.#options.core;
    // A run that has not ended does not continue because somebody reads.
    const row = store.durable && cellIn(id) !== undefined ? await store.load(actorOfRun(id)) : undefined;
    const isEnded = this.#ended.has(id) || (row !== undefined && isOver(statusInRow(row.actor.status)));
    const found = isEnded ? await this.#find(id) : undefined;
    return found && 'result' in found && isOwner(found.caller, callerOf(ctx)) ? found.result.whole : undefined;
  }

  /** Without a durable store, the result of a run stays here for a while. */
  #remember(id: string, ended: EndedRun): void {
    const { core } = this.#options;
    const { whole: _, ...counted } = ended.result;
    const bytes = core.quotas.retained.reserve(ended.caller.principal, RUN_BYTES + heapBytes(counted));
    if (isExcess(bytes)) return;
    this.#ended.set(id, ended);
    core.system.clock.after(core.limits.askMs, () => {
      this.#ended.delete(id);
      bytes.release();
    });
  }

  /** Waits for a run. */
  #attach(
    id: string,
    tool: string,
    found: LiveRun | EndedRun | CallToolResult,
    ctx: Context,
    functions: CallableFunctions,
  ): Promise<CallToolResult> | CallToolResult {
    if ('content' in found) return found;
    if ('result' in found) return resultOf(found.result);
    const { actor, gone } = found.run;
    // It may have ended, or moved, since it was found.
    const { result, isGone } = gone();
    if (result) return resultOf(result);
    if (isGone) return pausedResult(id, ['another process continues this run'], tool, undefined);
    const { mailbox } = actor;
    return new Promise((resolve, reject) => {
      const { signal } = ctx;
      const attachment = {
        ...{ ctx, functions },
        resolve(result: CallToolResult) {
          signal.removeEventListener('abort', left);
          resolve(result);
        },
        reject(error: unknown) {
          signal.removeEventListener('abort', left);
          reject(error);
        },
      };
      const left = (): void => {
        const { reason } = signal;
        mailbox.send({ type: 'left', attachment, how: howLeft(ctx, reason), reason });
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', left, { once: true });
      mailbox.send({ type: 'attach', attachment });
    });
  }

  #row(id: string, caller: StoredCaller, created: number, expires: number): ActorRow {
    const live = this.#live.get(id)?.run;
    const { principal } = caller;
    return {
      ...{ id: actorOfRun(id), kind: 'run', principal, created },
      name: this.#options.name,
      status: statusOfRow({ state: live?.state() ?? 'computing', paused: live?.attended() === false }),
      expires: live ? Math.max(live.until(), created) : expires,
    };
  }

  /** A run by its id, in memory or in the store. */
  async #find(id: string): Promise<LiveRun | EndedRun | undefined> {
    const known = this.#live.get(id) ?? this.#ended.get(id);
    if (known) return known;
    const { store } = this.#options.core;
    // Ids of runs carry their cell; another text names no actor.
    if (!store.durable || cellIn(id) === undefined) return undefined;
    const loading = this.#loading.get(id);
    if (loading) return loading;
    const read = this.#load(id).finally(() => this.#loading.delete(id));
    this.#loading.set(id, read);
    return read;
  }

  async #load(id: string): Promise<LiveRun | EndedRun | undefined> {
    const { core } = this.#options;
    const { store, limits, quotas } = core;
    const actor = actorOfRun(id);
    const row = await store.load(actor);
    if (row?.actor.name !== this.#options.name) return undefined;
    const { events, stored } = await RunJournal.read(store, actor);
    const [begun, ...before] = events;
    if (begun?.type !== 'begun') return undefined;
    const { code, seed, startedAt, groups, tool, caller } = begun;
    const last = events.at(-1);
    if (last?.type === 'ended') return { caller, result: last };
    const script: Script = { code, seed, startedAt, groups };
    const memory = quotas.retained.take(caller.principal, RUN_BYTES + heapBytes(code) + heapBytes(before));
    const expires = startedAt + limits.codeOpenMs;
    const journal = new RunJournal(
      store,
      actor,
      () => this.#row(id, caller, startedAt, expires),
      limits.codeJournalLength,
      stored,
    );
    return this.#spawn(id, { begun, script, tool, caller, journal, before, memory });
  }

  /** The server serves: runs that need no client continue. */
  started(): void {
    this.#serves = true;
    const taken = this.#taken;
    this.#taken = [];
    for (const id of taken) this.#revive(id);
  }

  #revive(id: string): void {
    this.#find(id).catch((error: unknown) =>
      this.#options.core.system.incident('continuing a run of a script after a restart', error),
    );
  }

  async take(cells: readonly number[] | undefined): Promise<void> {
    const { core, name } = this.#options;
    const { store } = core;
    if (!store.durable) return;
    let after: ActorRow | undefined;
    do {
      const rows: readonly ActorRow[] = await store.list({ kind: 'run', name, cells, after, limit: PAGE });
      for (const { id, status } of rows) if (runsAlone(statusInRow(status))) this.#taken.push(runOf(id));
      after = rows.length === PAGE ? rows.at(-1) : undefined;
    } while (after);
    if (this.#serves) core.system.clock.soon(() => this.started());
  }

  async drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    const leaving = [...this.#live].flatMap(([id, { run }]) => (isOfCells(cells, id) ? [run] : []));
    const how = flush ? 'move' : 'discard';
    for (const { actor } of leaving)
      actor.mailbox.send({ type: 'let go', reason: 'another node continues this run', how });
    await Promise.all(leaving.map((run) => run.left()));
  }

  *working(): Iterable<number> {
    for (const [id, { run }] of this.#live) {
      const cell = run.state().startsWith('waiting') && !run.awaited() ? undefined : cellIn(id);
      if (cell !== undefined) yield cell;
    }
  }

  /** Lets go of the runs of a principal. The caller deletes their rows. */
  forget(principal: string): void {
    for (const { run, caller } of [...this.#live.values()])
      if (caller.principal === principal)
        run.actor.mailbox.send({ type: 'let go', reason: 'the data of its caller is deleted', how: 'discard' });
    for (const [id, { caller }] of this.#ended) if (caller.principal === principal) this.#ended.delete(id);
  }

  /** The server stops. With a durable store, the next process continues the runs. */
  stop(reason: string): void {
    const { durable } = this.#options.core.store;
    const how = durable ? 'stop' : 'end';
    for (const { run } of [...this.#live.values()]) run.actor.mailbox.send({ type: 'let go', reason, how });
  }
}

/** The caller of a request. Of one who has not signed in, only the session distinguishes them. */
function callerOf(ctx: Context): StoredCaller {
  const { current } = requestContextOf(ctx);
  const { principal, capabilities, info, session } = current.client;
  return {
    principal,
    capabilities: jsonOf(capabilities),
    ...(info === undefined ? {} : { info: jsonOf(info) }),
    ...(principal === ANONYMOUS && session ? { session: sha256(session.id) } : {}),
    ...(current.auth === undefined ? {} : { auth: current.auth }),
  };
}

function jsonOf(value: object): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** True if the caller may continue the run. Of callers who have not signed in, only the id of the run, which is a secret, protects it. */
function isOwner(owner: StoredCaller, { principal }: StoredCaller): boolean {
  return owner.principal === principal;
}

/** The reason for which a request ends before its run. */
function howLeft(ctx: Context, reason: unknown): Departure {
  if (continuesElsewhere(ctx)) return 'moved';
  // The client cancelled, disconnected, or let the time of the request pass. Otherwise it has not returned to a question.
  return reason instanceof Error && reason.name === 'AbortError' ? 'cancelled' : 'lost';
}
