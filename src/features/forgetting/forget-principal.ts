/** Deletes the data of a principal: the parts of the server remove it from memory, then its rows leave the store. */
import { sha256 } from '../../core/kernel/sha256.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { NodeCalls } from '../../core/messages/node-calls.ts';
import { CELLS, cellOfActor } from '../../core/protocol/cell.ts';
import { describe, isJsonObject, isObject, type JsonObject } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { Core } from '../../core/server/feature.ts';
import type { ActorRow, StoredKind } from '../../core/store/store.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import { machines } from '../machines/machines.feature.ts';
import { OF_PRINCIPAL } from '../tasks/task-table.ts';
import type { ForgottenData } from './forgotten-data.ts';

export type { ForgottenData } from './forgotten-data.ts';

/** The name of the calls between nodes. */
export const FORGET = 'forget';
/** Rows in one read of the store, and deletions in one commit. */
const PAGE = 500;

/** The kinds of actors whose rows name their principal, and the counts to which they belong. */
const KINDS = {
  handle: 'instances',
  task: 'tasks',
  question: 'questions',
  session: 'sessions',
  state: 'state',
  approval: 'approvals',
  grant: 'approvals',
  run: 'runs',
  webhook: 'subscriptions',
} as const satisfies Partial<Record<StoredKind, keyof ForgottenData>>;
const KIND_NAMES = Object.keys(KINDS) as (keyof typeof KINDS)[];

type Counts = { -readonly [K in keyof ForgottenData]: number };

/**
 * Deletes the data of a principal at every node. May be called again: it then deletes what is left.
 *
 * @param calls undefined if this server owns all cells
 * @throws {TypeError} for a principal that is none of a person
 * @throws {StoreError | NodeCallError} if not everything is deleted
 */
export async function deletePrincipal(
  core: Core,
  calls: NodeCalls | undefined,
  principal: string,
  audit: Mailbox<AuditMail> | undefined,
): Promise<ForgottenData> {
  if (typeof principal !== 'string' || principal === '' || principal === ANONYMOUS)
    throw new TypeError(
      `server.forget: principal: expected the principal of a client that has signed in, got ${describe(principal)}`,
    );
  const counts = noCounts();
  if (calls) {
    const left = new Set(Array.from({ length: CELLS }, (_, cell) => cell));
    for (const cell of left) {
      const answer = await calls.call(cell, FORGET, { principal }, true);
      const { cells, counts: more } = isJsonObject(answer) ? answer : {};
      left.delete(cell);
      if (Array.isArray(cells)) for (const other of cells) left.delete(Number(other));
      add(counts, more);
    }
  } else add(counts, await deleteHere(core, principal, () => true));
  audit?.send({ type: 'control', action: 'forget', principal });
  return counts;
}

/** Serves the call of another node: deletes what is in the cells of this one, and names them. */
export async function serveForgetting(core: Core, calls: NodeCalls, { principal }: JsonObject): Promise<JsonObject> {
  if (typeof principal !== 'string') throw new TypeError(`expected a principal, got ${describe(principal)}`);
  const cells = Array.from({ length: CELLS }, (_, cell) => cell).filter((cell) => isOwn(calls, cell));
  const own = new Set(cells);
  const counts = await deleteHere(core, principal, (cell) => cell === undefined || own.has(cell));
  return { cells, counts: { ...counts } };
}

function isOwn(calls: NodeCalls, cell: number): boolean {
  const leave = calls.enter(cell);
  leave?.();
  return leave !== undefined;
}

/** @param isMine true for the cells of this node, and for undefined: an actor without a cell */
async function deleteHere(
  core: Core,
  principal: string,
  isMine: (cell: number | undefined) => boolean,
): Promise<ForgottenData> {
  const found = new Map<string, keyof ForgottenData>();
  const find = async (): Promise<void> => {
    for (const kind of KIND_NAMES)
      for (const { id } of await rowsOf(core, kind, kind === 'task' ? OF_PRINCIPAL + principal : principal))
        if (isMine(cellOfActor(id))) found.set(id, KINDS[kind]);
  };
  await find();
  const settling: Promise<void>[] = [];
  const ended = (_kind: 'task', actor: string): void => void found.set(actor, 'tasks');
  core.bus.emit('principal.forgotten', { principal, settling, ended });
  await Promise.all(settling);
  await core.sessions?.forget(principal);
  // Those that calls in flight have created meanwhile.
  await find();
  const others = [
    // The recorded results of its calls with idempotency keys.
    `key/${sha256(principal)}`,
    // The positions of mounts in the events of their upstreams.
    ...(await rowsOf(core, 'server', principal)).map(({ id }) => id),
    ...core
      .service(machines)
      .definitions()
      .map(({ name }) => `handles/${name}/principal ${principal}`),
  ];
  const actors = [...found.keys(), ...others];
  for (let from = 0; from < actors.length; from += PAGE)
    await core.store.commit(actors.slice(from, from + PAGE).map((actor) => ({ type: 'forget', actor })));
  const counts = noCounts();
  for (const kind of found.values()) counts[kind] += 1;
  return counts;
}

async function rowsOf({ store }: Core, kind: StoredKind, principal: string): Promise<readonly ActorRow[]> {
  const rows: ActorRow[] = [];
  for (let after: ActorRow | undefined; ; after = rows.at(-1)) {
    const page = await store.list({ kind, principal, after, limit: PAGE });
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}

function noCounts(): Counts {
  return { instances: 0, tasks: 0, questions: 0, sessions: 0, state: 0, approvals: 0, runs: 0, subscriptions: 0 };
}

function add(counts: Counts, more: unknown): void {
  if (!isObject(more)) return;
  for (const [name, amount] of Object.entries(more))
    if (name in counts && typeof amount === 'number') counts[name as keyof Counts] += amount;
}
