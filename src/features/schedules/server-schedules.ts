/** The schedules of one server: registers them, and runs those whose cells this process serves, once it serves. */
import { isoOf } from '../../core/kernel/clock.ts';
import type { Facts } from '../../core/kernel/inspection/records.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { CELLS, RANDOM_LENGTH, withCell } from '../../core/protocol/cell.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { checkHandler, DefinitionError } from '../../core/registry/definition-checks.ts';
import type { Core } from '../../core/server/feature.ts';
import { Attempts } from '../../core/store/attempts.ts';
import type { DeadLetter } from '../../core/store/store.ts';
import { type LiveSchedule, type ScheduleStatus, spawnSchedule } from './schedule.actor.ts';
import type { RegisteredSchedule, ScheduleHandler, ScheduleOptions } from './schedule-definition.ts';
import type { ScheduleDefinition } from './schedule-messages.ts';
import { latenessOf } from './schedule-metrics.ts';
import { checkScheduleName, readPlan } from './schedule-slots.ts';

const IN_MEMORY =
  'schedules run in the memory of this process: nothing makes up for slots that pass while it is down. Name a store to change that (the option store, or troupe run --data DIR)';

/** The place of schedules: this process. */
export interface SchedulePlace {
  /** True if this process serves, and owns the cell. */
  runs(cell: number): boolean;
}

interface Offered {
  readonly cell: number;
  readonly actor: LiveSchedule;
  definition: ScheduleDefinition;
}

export class ServerSchedules {
  readonly #core: Core;
  readonly #here: SchedulePlace;
  readonly #offered = new Map<string, Offered>();
  readonly #services: Parameters<typeof spawnSchedule>[2];
  #isWarned = false;

  constructor(core: Core, here: SchedulePlace) {
    this.#core = core;
    this.#here = here;
    const { system, store, limits } = core;
    const began = latenessOf(system.metrics);
    const { clock } = system;
    // People name dates by the wall clock. That of a database is steady, and the same for all nodes.
    const date = (): number => (clock.dateIsSteady ? clock.date() : (clock.wall?.() ?? clock.date()));
    this.#services = {
      system,
      store,
      date,
      graceMs: limits.graceMs,
      began,
      attempts: new Attempts(system, 'schedule'),
    };
  }

  /**
   * Registers a schedule, which runs while the server serves.
   *
   * @throws {DefinitionError} for a taken name or a handler that is no function
   * @throws {TypeError | RangeError} for invalid options, with a correction
   */
  define(name: string, options: ScheduleOptions, handler: ScheduleHandler): RegisteredSchedule {
    checkScheduleName('server.schedule', name);
    const where = `schedule "${name}"`;
    if (this.#offered.has(name)) throw new DefinitionError(`${where} is already registered: choose another name`);
    checkHandler(handler, where);
    const plan = readPlan(where, options, { timeoutMs: option.duration });
    const timeoutMs = options.timeoutMs ?? this.#core.limits.maxTimeoutMs;
    const offered = this.#offer({ name, plan, timeoutMs, handler });
    return {
      name,
      get next() {
        const next = offered.actor.next();
        return next === undefined ? undefined : isoOf(next);
      },
      run: () => {
        if (!this.run(name)) throw new Error(`${where}: this process does not run it now`);
      },
      remove: () => this.#remove(name),
    };
  }

  /** Runs the handler of a dead letter now. @returns false if this process does not run that schedule */
  again({ actor: address }: Pick<DeadLetter, 'actor'>): boolean {
    const found = [...this.#offered.values()].find(({ actor }) => actor.mailbox.address === address);
    if (!found?.actor.here) return false;
    found.actor.mailbox.send({ type: 'run' });
    return true;
  }

  /** The definitions, for a server that takes them over. */
  definitions(): readonly ScheduleDefinition[] {
    return [...this.#offered.values()].map(({ definition }) => definition);
  }

  /** Replaces all schedules, for a program that was loaded again. Those with the same dates go on with their next slots. */
  replace(definitions: readonly ScheduleDefinition[]): void {
    const names = new Set(definitions.map(({ name }) => name));
    for (const name of this.#offered.keys()) if (!names.has(name)) this.#remove(name);
    for (const definition of definitions) {
      const offered = this.#offered.get(definition.name);
      if (!offered) this.#offer(definition);
      else {
        offered.definition = definition;
        offered.actor.mailbox.send({ type: 'redefine', definition });
      }
    }
  }

  #offer(definition: ScheduleDefinition): Offered {
    const { name } = definition;
    const hash = sha256(`schedule ${name}`);
    const cell = Number.parseInt(sha256(`cell of schedule ${name}`, 'hex').slice(0, 8), 16) % CELLS;
    const actor = spawnSchedule(`schedule/${withCell(cell, hash.slice(0, RANDOM_LENGTH))}`, definition, this.#services);
    const offered = { cell, actor, definition };
    this.#offered.set(name, offered);
    this.#begin(offered);
    return offered;
  }

  #remove(name: string): void {
    const offered = this.#offered.get(name);
    if (!offered) return;
    this.#offered.delete(name);
    offered.actor.mailbox.send({ type: 'remove' });
    if (!offered.actor.busy) offered.actor.stop('the program has removed it');
  }

  /** Begins with the schedules that this process is to run, and does not run yet. */
  begin(): void {
    for (const offered of this.#offered.values()) this.#begin(offered);
  }

  #begin({ cell, actor }: Offered): void {
    if (!this.#here.runs(cell)) return;
    if (!this.#core.store.durable && !this.#isWarned) {
      this.#isWarned = true;
      this.#core.log('info', IN_MEMORY, { event: 'store' });
    }
    actor.mailbox.send({ type: 'take' });
  }

  /**
   * Lets go of schedules. Handlers that run may end, for a time; those that do not begin again elsewhere, or with the next start.
   *
   * @param cells undefined: all of them
   * @param flush false: nothing may be stored any more
   */
  async leave(cells: ReadonlySet<number> | undefined, flush: boolean): Promise<void> {
    const leaving = [...this.#offered.values()].filter(({ cell }) => !cells || cells.has(cell));
    await Promise.all(
      leaving.map(
        ({ actor }) => new Promise<void>((left) => actor.mailbox.send({ type: 'leave', flush, left: () => left() })),
      ),
    );
  }

  /** The cells of the schedules whose handlers run. */
  *working(): Iterable<number> {
    for (const { cell, actor } of this.#offered.values()) if (actor.busy) yield cell;
  }

  /** The schedules as an operator sees them. */
  statuses(): readonly ScheduleStatus[] {
    return [...this.#offered.values()].map(({ actor }) => actor.status());
  }

  /** Runs a handler now, without a slot. @returns false if this process does not run that schedule */
  run(name: string): boolean {
    const { actor } = this.#offered.get(name) ?? {};
    if (!actor?.here) return false;
    actor.mailbox.send({ type: 'run' });
    return true;
  }

  /** The schedules for the inspector. */
  facts(): Facts {
    return Object.fromEntries([...this.#offered].map(([name, { actor }]) => [name, actor.facts()]));
  }
}
