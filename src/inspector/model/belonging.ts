/** Relations without a record: the actor that represents a connection, and the chart of a machine's handles. */
import type { ActorLine } from './actor-line.ts';

type Actors = ReadonlyMap<string, ActorLine>;

/** True for the connection of a mount to its server. Other clients are not inside of a server. */
export function isUpstream(line: Pick<ActorLine, 'kind' | 'parent'> | undefined): boolean {
  return line?.kind === 'client' && line.parent !== undefined;
}

/** The actor that represents each connection. */
export class Doors {
  readonly #doors = new Map<string, string>();

  /** Its session, or otherwise its table of requests. */
  of(connection: string): string {
    return this.#doors.get(connection) ?? connection;
  }

  add({ connection, address, kind }: ActorLine, actors: Actors): void {
    if (connection === undefined) return;
    const there = actors.get(this.#doors.get(connection) ?? '');
    if (kind === 'session' || (kind === 'requests' && there?.kind !== 'session')) this.#doors.set(connection, address);
  }

  clear(): void {
    this.#doors.clear();
  }
}

/** The chart of the handles of each machine. */
export class Machines {
  readonly #charts = new Map<string, string>();

  /** A hibernating handle has no chart of its own: use the chart of the other handles of its machine. */
  add(line: ActorLine, actors: Actors): void {
    if (line.kind !== 'handle') return;
    const machine = machineOf(line.address);
    if (line.chart === undefined) {
      line.chart = this.#charts.get(machine);
      return;
    }
    if (this.#charts.has(machine)) return;
    this.#charts.set(machine, line.chart);
    for (const other of actors.values())
      if (other.kind === 'handle' && machineOf(other.address) === machine) other.chart ??= line.chart;
  }

  clear(): void {
    this.#charts.clear();
  }
}

/** The name of a handle's machine, from its address. @example machineOf('handle/order/9f2a') // 'order' */
function machineOf(address: string): string {
  return address.split('/')[1] ?? address;
}
