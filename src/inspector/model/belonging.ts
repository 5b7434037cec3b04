/** What belongs together though no record says so: a connection and who stands for it, handles and the chart of their machine. */
import type { ActorLine } from './actor-line.ts';

type Actors = ReadonlyMap<string, ActorLine>;

/** By connection: the actor that stands for it. */
export class Doors {
  readonly #doors = new Map<string, string>();

  /** Its session, or else its table of requests. */
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

/** By the name of a machine: the chart of its handles. */
export class Machines {
  readonly #charts = new Map<string, string>();

  /** A handle that sleeps does not tell its chart: it has that of the others of its machine. */
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

/** The name of a handle's machine, which is in its address. @example machineOf('handle/order/9f2a') // 'order' */
function machineOf(address: string): string {
  return address.split('/')[1] ?? address;
}
