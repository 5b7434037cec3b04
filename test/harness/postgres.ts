/**
 * Throw-away PostgreSQL for tests: the server that all files of a run share, with databases for each, and servers of their own for
 * the files that kill theirs. Each has a temporary data directory and a port on loopback, and ends with the process that started it.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import type { SharedPostgres } from '../runner/reports.ts';
import { type Suite, suite } from './door.ts';
import { freePort } from './free-port.ts';
import { inTime, until } from './wait.ts';

const DEBIAN = '/usr/lib/postgresql';
const USER = 'troupe';

/** The folder of `initdb` and `postgres`: the newest of Debian's, or one on the PATH. Undefined where there is none. */
export const programs = find();

function find(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  return folders.find((folder) => existsSync(join(folder, 'initdb')) && existsSync(join(folder, 'postgres')));
}

/** PostgreSQL refuses to run as root: a superuser's tests run it as `nobody`. */
function unprivileged(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (flag: string): number => Number(spawnSync('id', [flag, 'nobody'], { encoding: 'utf8' }).stdout);
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/**
 * Ends the server and deletes its directory when the pipe from this process closes: also after SIGKILL. Its argument is the
 * directory. The first line of `postmaster.pid` is the process id.
 */
const GUARDIAN = `cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
rm -rf "$1"`;

export interface PostgresOptions {
  /** Whether a commit waits for the disk, as in production. True by default. */
  readonly fsync?: boolean;
  /** More settings of the server, such as `{ max_connections: 20 }`. A standby has those of its primary. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Where its directory is made. Default: among the temporary files. */
  readonly parent?: string;
  /** Whether a copy of its data is made before it starts, in `EMPTY` of its directory. */
  readonly copied?: boolean;
}

/** Starts a server with an empty database. It ends with this process, whatever ends that. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  // A copy of the data of an empty server takes a tenth of the time of initdb.
  const empty = (await ofRun())?.empty;
  return startServer(options, empty === undefined ? ['initdb', ...INITDB, '-D', DATA] : ['cp', '-a', empty, DATA]);
}

const INITDB = ['-U', USER, '--auth=trust', '--no-sync', '--locale=C', '--encoding=UTF8'];

/** Starts a server in a directory of its own, whose data this command makes. */
async function startServer(options: PostgresOptions, [program = '', ...words]: readonly string[]): Promise<Postgres> {
  if (programs === undefined) throw new Error('no PostgreSQL: its initdb was not found');
  const installed = programs;
  const owner = unprivileged();
  const make = async (name: string, args: readonly string[]): Promise<void> => {
    const own = join(installed, name);
    const making = spawn(existsSync(own) ? own : name, args, {
      ...owner,
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [[code], error] = await Promise.all([once(making, 'exit'), text(making.stderr)]);
    if (code !== 0) throw new Error(`${name} failed: ${error}`);
  };
  const folder = mkdtempSync(join(options.parent ?? tmpdir(), 'troupe-postgres-'));
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const guardian = spawn('sh', ['-c', GUARDIAN, 'sh', folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  await make(program, words);
  // The run copies it for each server of a file.
  if (options.copied) await make('cp', ['-a', DATA, EMPTY]);
  const server = new Postgres(programs, folder, owner, await freePort(), options, guardian);
  await server.start();
  return server;
}

/** The data of a server, in its directory. */
const DATA = 'data';
/** The data before its first start. */
export const EMPTY = 'empty';

/** A server in which a file has databases. */
export class Databases {
  readonly port: number;
  /** The databases that were made. */
  readonly made: string[] = [];
  readonly #prefix: string;

  /** @param prefix how the names of its databases begin */
  constructor(port: number, prefix: string) {
    this.port = port;
    this.#prefix = prefix;
  }

  /** The URL of the database that is there from the start. */
  get url(): string {
    return this.#urlOf('postgres');
  }

  /** Creates an empty database. @returns its URL */
  async database(): Promise<string> {
    const name = `${this.#prefix}${this.made.length + 1}`;
    this.made.push(name);
    await this.query(`CREATE DATABASE ${name}`);
    return this.#urlOf(name);
  }

  /** Runs one statement on a connection of its own. */
  async query(text: string, url = this.url): Promise<readonly Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const { rows } = await client.query<Record<string, unknown>>(text);
      return rows;
    } finally {
      await client.end();
    }
  }

  /** Deletes its databases. */
  async stop(): Promise<void> {
    for (const name of this.made) await this.query(`DROP DATABASE ${name} WITH (FORCE)`);
  }

  #urlOf(database: string): string {
    return `postgres://${USER}@127.0.0.1:${this.port}/${database}`;
  }
}

let files = 0;

/** Databases in the server that all files of the run share: for those that neither stop it nor change its settings. */
export async function sharedPostgres(): Promise<Databases> {
  const shared = await ofRun();
  files += 1;
  return shared ? new Databases(shared.port, `test_${process.pid}_${files}_`) : startPostgres({ fsync: false });
}

/** Asks the runner for the PostgreSQL of the run. Undefined in a process that is not of the runner. */
async function ofRun(): Promise<SharedPostgres | undefined> {
  if (!process.send || !process.argv.includes('--inside')) return undefined;
  const answer = once(process, 'message');
  process.send({ kind: 'postgres' });
  const [shared] = (await answer) as [SharedPostgres | { readonly error: string }];
  if ('error' in shared) throw new Error(shared.error);
  return shared;
}

/** One server. It keeps its port and its data from one start to the next. */
export class Postgres extends Databases {
  /** Its directory, which `stop` deletes. */
  readonly folder: string;
  readonly #programs: string;
  readonly #owner: { uid?: number; gid?: number };
  readonly #options: PostgresOptions;
  readonly #guardian: ChildProcess;
  #server: ChildProcess | undefined;

  constructor(
    programFolder: string,
    folder: string,
    owner: { uid?: number; gid?: number },
    port: number,
    options: PostgresOptions,
    guardian: ChildProcess,
  ) {
    super(port, 'test');
    this.#programs = programFolder;
    this.folder = folder;
    this.#owner = owner;
    this.#options = options;
    this.#guardian = guardian;
    // A test that forgets to stop its server does not hold up its process: the guardian stops it.
    guardian.unref();
    unrefPipe(guardian.stdin);
  }

  /** The process id of the server's first process; 0 while it is stopped. */
  get pid(): number {
    return this.#server?.pid ?? 0;
  }

  /** Starts the server, and resolves when it accepts connections. */
  async start(): Promise<void> {
    const settings = {
      listen_addresses: '127.0.0.1',
      port: this.port,
      unix_socket_directories: this.folder,
      fsync: this.#options.fsync === false ? 'off' : 'on',
      max_connections: 200,
      shared_buffers: '32MB',
      // From this level on, the log has the line that the start waits for, and no error of a client.
      log_min_messages: 'log',
      ...this.#options.settings,
    };
    const words = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = spawn(join(this.#programs, 'postgres'), ['-D', join(this.folder, DATA), ...words], {
      ...this.#owner,
      cwd: this.folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      // Ctrl-C in a terminal ends the tests; the guardian ends the server then.
      detached: true,
    });
    this.#server = server;
    await started(server);
    server.unref();
    unrefPipe(server.stderr);
  }

  /** Ends the server at once, as a crash does: its next start recovers from the log. */
  async kill(signal: 'SIGQUIT' | 'SIGKILL' = 'SIGQUIT'): Promise<void> {
    await this.#end(signal);
  }

  /** Starts a standby with the data of this server. From then on, no commit is acknowledged before the standby has it. */
  async standby(): Promise<Postgres> {
    const from = `host=127.0.0.1 port=${this.port} user=${USER} application_name=standby`;
    const words = ['-d', from, '--write-recovery-conf', '--checkpoint=fast', '--no-sync', '--wal-method=stream'];
    const standby = await startServer(this.#options, ['pg_basebackup', ...words, '-D', DATA]);
    await this.query(`ALTER SYSTEM SET synchronous_standby_names = 'standby'`);
    await this.query('SELECT pg_reload_conf()');
    const synchronous = `SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`;
    await until(async () => (await this.query(synchronous)).length > 0, 'the standby to be synchronous');
    return standby;
  }

  /** Makes a standby the primary. Resolves when it accepts writes. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote()');
  }

  /** Ends the server, and deletes its data. */
  override async stop(): Promise<void> {
    await this.#end('SIGINT');
    rmSync(this.folder, { recursive: true, force: true });
    this.#guardian.ref();
    const gone = once(this.#guardian, 'exit');
    this.#guardian.stdin?.end();
    await gone;
  }

  async #end(signal: 'SIGQUIT' | 'SIGINT' | 'SIGKILL'): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.ref();
    const gone = once(server, 'exit');
    server.kill(signal);
    await gone;
  }
}

/** Resolves when the server accepts connections, by its own log. */
function started(server: ChildProcess): Promise<void> {
  let log = '';
  const answer = new Promise<void>((ready, fail) => {
    const settle = (error?: Error): void => {
      server.off('error', settle).off('exit', onExit);
      // From here on the log is read and dropped, so that the server never waits for its pipe.
      server.stderr?.off('data', onLog).resume();
      if (error) fail(error);
      else ready();
    };
    const onExit = (code: number | null): void => settle(new Error(`PostgreSQL ended with ${code}: ${log}`));
    const onLog = (line: string): void => {
      log += line;
      // A standby is read-only.
      if (/ready to accept (?:read-only )?connections/.test(log)) settle();
    };
    server.once('error', settle).once('exit', onExit);
    server.stderr?.setEncoding('utf8').on('data', onLog);
  });
  return inTime(answer, () => `PostgreSQL to start: ${log}`);
}

/** A pipe of a child is a socket, which would keep the process alive. */
function unrefPipe(pipe: ChildProcess['stdin'] | ChildProcess['stderr']): void {
  if (pipe && 'unref' in pipe && typeof pipe.unref === 'function') pipe.unref();
}

/** A suite that needs PostgreSQL. */
export function postgresSuite(name: string): Suite {
  return suite(name, programs === undefined ? 'no PostgreSQL: install postgresql' : undefined);
}

/** A suite of nodes over the PostgreSQL of the run, with databases of it. */
interface NodesSuite {
  readonly nodes: Suite;
  /** The servers that are closed after the suite. */
  readonly servers: { close(): Promise<unknown> }[];
  /** Makes a database. @returns its address */
  database(): Promise<string>;
}

/** A suite of nodes that need a PostgreSQL, or a line that there is none. */
export function nodesSuite(name: string): NodesSuite {
  const nodes = postgresSuite(name);
  const servers: NodesSuite['servers'] = [];
  let postgres: Databases | undefined;
  nodes.before(async () => {
    postgres = await sharedPostgres();
  });
  nodes.after(async () => {
    for (const server of servers) await server.close();
    await postgres?.stop();
  });
  return {
    nodes,
    servers,
    database() {
      if (!postgres) throw new Error('expected a test of the suite, got a call before it began');
      return postgres.database();
    },
  };
}
