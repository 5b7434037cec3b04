/** A stage for faults of a cluster: node processes on one temporary PostgreSQL, behind a balancer that knows nothing of sessions. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import pg from 'pg';
import { startable } from '../../harness/compiled.ts';
import { freePort } from '../../harness/free-port.ts';
import { type Databases, type Postgres, sharedPostgres } from '../../harness/postgres.ts';
import { TcpProxy } from '../../harness/tcp-proxy.ts';
import { HANG_MS, inTime, until } from '../../harness/wait.ts';
import { Balancer, type BalancerOptions } from './balancer.ts';
import { placementOf } from './placement.ts';

const SECRET = 'the secret that all nodes of the stage share';
/** Characters of a node's log in an error. */
const LOG_LENGTH = 2_000;

export interface StageOptions extends BalancerOptions {
  /** Default: 3. */
  readonly nodes?: number;
  /** The program of a node, in TypeScript: see test/fixtures/cluster/node.ts for its arguments. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The database server. Default: that of the run. The stage stops it. */
  readonly postgres?: Databases;
}

/** A module that ends a node when its test has ended in any way: the node's standard input closes then. */
const ENDS_WITH_TEST = 'data:text/javascript,process.stdin.resume().on("end",()=>process.exit(1)).unref()';

/** One node: a process, and its cable to the database. */
export class StageNode {
  readonly port: number;
  readonly linkPort: number;
  /** Its way to the database, which a test can cut. */
  readonly cable: TcpProxy;
  readonly #arguments: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  /** Its log, of all its processes. */
  log = '';

  constructor(
    ports: { readonly http: number; readonly link: number },
    cable: TcpProxy,
    words: readonly string[],
    env: Readonly<Record<string, string>>,
  ) {
    this.port = ports.http;
    this.linkPort = ports.link;
    this.cable = cable;
    this.#arguments = words;
    this.#env = env;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** The exit code of its last process; undefined while that runs. */
  get exitCode(): number | undefined {
    return this.#child?.exitCode ?? undefined;
  }

  /** Starts a process, and resolves when it serves. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--import', ENDS_WITH_TEST, ...this.#arguments], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...this.#env },
    });
    this.#child = child;
    this.#exited = once(child, 'exit');
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        // The end of a log tells why.
        this.log = (this.log + text).slice(-20_000);
      });
    const started = Promise.race([
      once(child.stdout, 'data'),
      this.#exited.then(() => {
        throw new Error(`the node did not start: ${this.log}`);
      }),
    ]);
    await inTime(started, () => `the node to start: ${this.log}`);
  }

  /** Ends its process at once. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#exited;
  }

  /** Asks its process to stop, and resolves when it has. */
  async stop(): Promise<void> {
    this.signal('SIGTERM');
    await this.#exited;
  }

  /** SIGSTOP pauses its process, and SIGCONT lets it run on. */
  signal(signal: 'SIGKILL' | 'SIGTERM' | 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }
}

/** Where the database says the nodes and cells are. */
export interface ClusterState {
  /** The member ids of nodes that are not fenced. */
  readonly alive: readonly string[];
  /** The nodes that are fenced, or have been. */
  readonly fenced: readonly string[];
  /** The link port of the owner of each cell; undefined for a cell without a living owner. */
  readonly owners: readonly (number | undefined)[];
}

export class ClusterStage {
  readonly nodes: readonly StageNode[];
  readonly balancer: Balancer;
  #postgres: Databases;
  #database: string;
  #client: pg.Client;

  private constructor(
    postgres: Databases,
    database: string,
    nodes: readonly StageNode[],
    balancer: Balancer,
    client: pg.Client,
  ) {
    this.#postgres = postgres;
    this.#client = client;
    this.#database = database;
    this.nodes = nodes;
    this.balancer = balancer;
  }

  static async open({
    nodes: count = 3,
    program = 'test/fixtures/cluster/node.ts',
    env = {},
    resends = false,
    postgres: given,
  }: StageOptions = {}): Promise<ClusterStage> {
    const postgres = given ?? (await sharedPostgres());
    const database = await postgres.database();
    const nodes: StageNode[] = [];
    for (let index = 0; index < count; index += 1) {
      const ports = { http: await freePort(), link: await freePort() };
      const cable = await TcpProxy.open(postgres.port);
      const through = database.replace(`:${postgres.port}/`, `:${cable.port}/`);
      const words = [startable(program), through, String(ports.http), String(ports.link), SECRET];
      nodes.push(new StageNode(ports, cable, words, env));
    }
    const client = await clientOf(database);
    const balancer = await Balancer.open(
      nodes.map(({ port }) => port),
      { resends },
    );
    const stage = new ClusterStage(postgres, database, nodes, balancer, client);
    try {
      await Promise.all(nodes.map((node) => node.start()));
      await stage.settled();
      return stage;
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  /** The endpoint behind the balancer. */
  get url(): string {
    return `http://127.0.0.1:${this.balancer.port}/mcp`;
  }

  /** The primary. */
  get postgres(): Databases {
    return this.#postgres;
  }

  /** The URL of the primary, past all cables. */
  get database(): string {
    return this.#database;
  }

  /**
   * Promotes a standby of the primary, and leads all cables to it. Resolves when it accepts writes.
   *
   * @param how `lead` closes what led to the former primary, and `divert` leaves it as it is
   */
  async failOver(standby: Postgres, how: 'lead' | 'divert' = 'lead'): Promise<void> {
    await standby.promote();
    for (const { cable } of this.nodes) cable[how](standby.port);
    this.#database = this.#database.replace(`:${this.#postgres.port}/`, `:${standby.port}/`);
    this.#postgres = standby;
    await this.#client.end().catch(() => {});
    this.#client = await clientOf(this.#database);
  }

  /** Asks the database, on a connection of the stage's own. */
  async query(text: string): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await this.#client.query<Record<string, unknown>>(text);
    return rows;
  }

  /** The nodes and the owners of all cells, as the database has them. */
  async state(): Promise<ClusterState> {
    const nodes = await this.query('SELECT id, address, fenced FROM troupe.node');
    const cells = await this.query('SELECT node FROM troupe.cell ORDER BY n');
    const ports = new Map(
      nodes.filter(({ fenced }) => !fenced).map(({ id, address }) => [id, Number(String(address).split(':').at(-1))]),
    );
    return {
      alive: nodes.filter(({ fenced }) => !fenced).map(({ id }) => String(id)),
      fenced: nodes.filter(({ fenced }) => fenced).map(({ id }) => String(id)),
      owners: cells.map(({ node }) => ports.get(node)),
    };
  }

  /**
   * Resolves when living nodes own all cells, as many nodes as there are processes, each has its share, and all were
   * connected for longer than the lease, before which none may judge another.
   *
   * @throws {Error} with the state and the end of each node's log if they do not
   */
  async settled(count = this.nodes.length, hangMs = HANG_MS): Promise<void> {
    const young = `SELECT FROM pg_stat_activity WHERE application_name = 'troupe beat' AND backend_start > clock_timestamp() - interval '3 s'`;
    let state = await this.state();
    await until(
      async () => {
        state = await this.state();
        const { alive, owners } = state;
        const shared = alive.length === count && new Set(owners).size === count && !owners.includes(undefined);
        return shared && (await this.query(young)).length === 0;
      },
      () => `${count} nodes to settle: ${this.#described(state)}`,
      hangMs,
    );
  }

  #described({ alive, fenced, owners }: ClusterState): string {
    const cells = new Map<number | undefined, number>();
    for (const owner of owners) cells.set(owner, (cells.get(owner) ?? 0) + 1);
    const owned = Array.from(cells, ([port, number]) => `${port ?? 'no living node'}: ${number}`).join(', ');
    const logs = this.nodes.map(
      ({ linkPort, pid, exitCode, log }) =>
        `\n--- link port ${linkPort}, process ${pid}, exit code ${exitCode ?? 'none'}\n${log.slice(-LOG_LENGTH)}`,
    );
    return `alive ${alive.join(', ') || 'none'}; fenced ${fenced.join(', ') || 'none'}; cells by the link port of their owner ${owned || 'none'}${logs.join('')}`;
  }

  /** Resolves when the node that should own this cell does: it moves no more while the nodes stay the same. */
  async atRest(cell: number): Promise<void> {
    const placed = async () => !(await placementOf((text) => this.query(text))).misplaced.includes(cell);
    await until(placed, `cell ${cell} to be where it should be`);
  }

  /**
   * Extends the lease of a node beyond the test: only the end of its connection to the database can show its death from now
   * on. For a node that is dead, because one that runs writes its beat again.
   */
  async extendLease({ linkPort }: StageNode): Promise<void> {
    await this.query(
      `UPDATE troupe.beat SET at = clock_timestamp() + interval '1 hour', loop_at = clock_timestamp() + interval '1 hour'
WHERE node IN (SELECT id FROM troupe.node WHERE NOT fenced AND address LIKE '%:${linkPort}')`,
    );
  }

  /**
   * Until the next call, only this node may be fenced: the beats of the others count as in time, although a busy machine delays them.
   *
   * @param why `silence`: it does not beat. `loop`: it beats, and its event loop is blocked
   */
  async onlyFences({ linkPort }: StageNode, why: 'silence' | 'loop'): Promise<void> {
    const victim = `SELECT id FROM troupe.node WHERE NOT fenced AND address LIKE '%:${linkPort}'`;
    const [{ id } = {}] = await this.query(victim);
    const later = "clock_timestamp() + interval '1 hour'";
    await this.query(`CREATE OR REPLACE FUNCTION troupe.in_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF NEW.node <> '${String(id)}' THEN NEW.loop_at := ${later}; END IF;
IF NEW.node <> '${String(id)}' OR ${why === 'loop'} THEN NEW.at := ${later}; END IF;
RETURN NEW; END $$;
CREATE OR REPLACE TRIGGER in_time BEFORE INSERT OR UPDATE ON troupe.beat FOR EACH ROW EXECUTE FUNCTION troupe.in_time();
UPDATE troupe.beat SET at = clock_timestamp(), loop_at = clock_timestamp()`);
  }

  /** The node that owns a cell. */
  async ownerOf(cell: number): Promise<StageNode | undefined> {
    const { owners } = await this.state();
    return this.nodes.find(({ linkPort }) => linkPort === owners[cell]);
  }

  async close(): Promise<void> {
    await this.balancer.close();
    for (const node of this.nodes) node.signal('SIGCONT');
    await Promise.all(this.nodes.map((node) => node.kill()));
    await Promise.all(this.nodes.map(({ cable }) => cable.close()));
    await this.#client.end();
    await this.postgres.stop();
  }
}

async function clientOf(database: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database });
  // Its server may be killed while nobody asks.
  client.on('error', () => {});
  await client.connect();
  return client;
}
