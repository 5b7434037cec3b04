/** `troupe pack FILE|DIR`: makes one archive of a server, which desktop hosts install (.mcpb). */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceFile } from '../../core/kernel/files/replace-file.ts';
import { packageFile } from '../../core/kernel/package-files.ts';
import { isJsonObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { writeExact } from '../../core/protocol/json-text.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { nearest } from '../../features/discovery/node-loader.ts';
import { readCallTarget } from '../call/call-target.ts';
import { Interrupt, withClient } from '../call/command-client.ts';
import { listServer, type ServerListing } from '../call/server-listing.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { type AskedVariable, bundleManifest, COMMAND, picturesOf } from '../pack/bundle-manifest.ts';
import { packedFile, packedPackages } from '../pack/packed-packages.ts';
import { compiledPath, PackError, packedProject } from '../pack/packed-project.ts';
import { registryEntry } from '../pack/registry-entry.ts';
import { type ZipFile, zipArchive } from '../pack/zip-archive.ts';
import { isVariable, readEnvBeside } from '../serving/env-file.ts';
import { CALLED, readTarget, type Target } from '../serving/target.ts';
import { plural } from '../top/format.ts';
import { print, say, UsageError } from '../usage.ts';

/** Files that a line on stderr names. */
const MOST_NAMED = 30;

const OPTIONS = { out: 'FILE', env: 'NAME…', data: '', release: 'URL' };

const HELP = `Usage: troupe pack [FILE|DIR] [--out FILE] [--env NAME]… [--data] [--release URL] [-- ARGS]

Makes an archive of the server, with all that it needs, which desktop hosts such
as Claude Desktop install (.mcpb). Its manifest is made of package.json and of
what the server offers: the packed server is started once.

  --out FILE     the archive; default: NAME-VERSION.mcpb
  --env NAME     a variable that the host asks its user for; NAME=VALUE has a
                 default. The names in .env.example need no option. May be repeated
  --data         durable state in a folder that the user chooses. The archive runs
                 on the platform of this machine only
  --release URL  the address of the archive after its release: also writes
                 server.json, with the hash of the archive, for the MCP Registry

The archive has the modules and files of the project as "files" of package.json
names them, and the packages of its "dependencies". Secrets, databases, tests and
names that begin with a dot stay out. ARGS are passed to FILE.
`;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('pack', args, OPTIONS);
  const target = line && readTarget('pack', [...line.positionals, '--', ...line.rest], io);
  if (!line || !target) return print(io, HELP);
  const { values, lists, rest } = line;
  const { release } = values;
  if (release !== undefined && !(URL.canParse(release) && release.startsWith('https://')))
    throw new UsageError(`troupe pack: --release: expected an address that begins with https://, got ${release}`);
  const given = (lists.env ?? []).map(readVariable);
  try {
    return await pack(target, { ...values, args: rest, variables: given }, io);
  } catch (error) {
    if (!(error instanceof PackError)) throw error;
    say(`troupe pack: ${error.message}`, 'error');
    return 1;
  }
}

interface PackOptions {
  readonly out?: string;
  readonly data?: string;
  readonly release?: string;
  readonly args: readonly string[];
  readonly variables: readonly AskedVariable[];
}

async function pack(target: Target, options: PackOptions, io: CommandIo): Promise<number> {
  const { path, kind } = target;
  const manifestFile = nearest('package.json', kind === 'directory' ? path : dirname(path));
  if (manifestFile === undefined)
    throw new PackError(
      `expected a package.json in a folder of ${path}: the archive has its name and version. npm init makes one`,
    );
  const root = realpathSync(dirname(manifestFile));
  const project = readProject(manifestFile);
  const data = options.data !== undefined;
  const own = fileURLToPath(packageFile('.'));
  const packages = packedPackages(root, own, data);
  if (packages.missing.length > 0)
    throw new PackError(`${packages.missing.join(', ')}: expected installed packages, got none. Run npm install`);
  const files = [...(await packedProject(root, project)), ...packages.files];
  const type = project.type;
  files.push({
    path: 'package.json',
    bytes: Buffer.from(
      `${writeExact({ name: project.name, version: project.version, ...(type !== undefined && { type }) })}\n`,
    ),
    executable: false,
  });
  const entry = compiledPath(relative(root, path).split(sep).join('/'), type) || '.';
  if (kind === 'file' && !files.some((file) => file.path === entry))
    throw new PackError(`"files" of package.json leaves out the program ${relative(root, path)}. Add it`);
  const variables = [
    ...examples(root).filter(({ name }) => !options.variables.some((each) => each.name === name)),
    ...options.variables,
  ];
  const manifestOf = (offers?: ServerListing): JsonObject =>
    bundleManifest({
      ...{ project, entry, variables, data, args: options.args },
      ...{ tools: offers?.tools ?? [], prompts: offers?.prompts ?? [], title: offers?.server.title },
      node: supportedNode(own),
      platform: packages.native.length > 0 ? process.platform : undefined,
    });
  const entryOf = (release: string, hash: string, title?: string): JsonObject =>
    registryEntry({ project, release, hash, variables, title });
  // The mistakes of package.json first: the start of a server takes a second.
  for (const picture of picturesOf(manifestOf())) {
    if (!existsSync(join(root, picture))) throw new PackError(`package.json: mcpb: ${picture}: no such file`);
    if (!files.some((file) => file.path === picture)) files.push(packedFile(join(root, picture), picture));
  }
  if (options.release !== undefined) entryOf(options.release, '');
  return started(files, target, entry, options, io, (listing) => {
    const manifest = manifestOf(listing);
    files.push({
      path: 'manifest.json',
      bytes: Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`),
      executable: false,
    });
    const archive = zipArchive(files);
    const hash = createHash('sha256').update(archive).digest('hex');
    const name = `${String(manifest.name)
      .replace(/^@/, '')
      .replace(/[^\w.-]+/g, '-')}-${String(manifest.version)}.mcpb`;
    const out = options.out ?? name;
    replaceFile(absolutePath(io, out), archive);
    print(
      io,
      `${out}: ${plural(listing.tools.length, 'tool')}, ${plural(files.length, 'file')}, ${(archive.length / 1e6).toFixed(1)} MB, sha256 ${hash}\n`,
    );
    const named = files.flatMap(({ path: each }) => (each.startsWith('node_modules/') ? [] : each)).sort();
    const more = named.length > MOST_NAMED ? ` and ${named.length - MOST_NAMED} more` : '';
    say(
      `troupe pack: of the project: ${named
        .slice(0, MOST_NAMED)
        .map((each) => visibleLine(each))
        .join(', ')}${more}`,
    );
    if (packages.native.length > 0)
      say(
        `troupe pack: the archive runs on ${process.platform} only, because ${packages.native.join(', ')} ${packages.native.length === 1 ? 'has a binary' : 'have binaries'}`,
      );
    if (options.release === undefined) return 0;
    const registered = entryOf(options.release, hash, listing.server.title);
    replaceFile(join(root, 'server.json'), `${JSON.stringify(registered, undefined, 2)}\n`);
    print(
      io,
      `${relative(io.cwd, join(root, 'server.json'))}: publish it with mcp-publisher once the archive is at ${options.release}\n`,
    );
    return 0;
  });
}

/** Starts the server from its packed files, in a folder where nothing else is, and works with what it offers. */
async function started(
  files: readonly ZipFile[],
  { path }: Target,
  entry: string,
  { args }: PackOptions,
  io: CommandIo,
  work: (listing: ServerListing) => number,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-pack-'));
  try {
    for (const file of files) {
      mkdirSync(dirname(join(folder, file.path)), { recursive: true });
      writeFileSync(join(folder, file.path), file.bytes, { mode: file.executable ? 0o755 : 0o644 });
    }
    const { env } = readEnvBeside('pack', { path, kind: 'file' }, {}, io);
    const started = [
      process.execPath,
      join(folder, COMMAND),
      'run',
      join(folder, entry),
      '--no-supervisor',
      '--',
      ...args,
    ];
    const command = readCallTarget('pack', [], started, [], { cwd: io.cwd, env: { ...env, [CALLED]: '1' } });
    // A program of Troupe serves every era.
    const patience = { ...command.patience, eras: 'modern' } as const;
    const connected = { ...command, name: 'the packed server', patience };
    return await withClient(
      { io, command: 'pack', target: connected, data: undefined, open: false, interactive: false, connect: {} },
      new Interrupt('pack', io),
      async (client) => work(await listServer(client)),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readProject(file: string): JsonObject {
  try {
    const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isJsonObject(read)) return read;
  } catch (error) {
    throw new PackError(`${file}: expected JSON: ${messageOf(error)}`);
  }
  throw new PackError(`${file}: expected an object`);
}

/** The versions of Node that this package supports. */
function supportedNode(own: string): string {
  const { engines } = readProject(join(own, 'package.json'));
  return String(Object(engines).node);
}

/** @throws {UsageError} */
function readVariable(given: string): AskedVariable {
  const at = given.indexOf('=');
  const name = at < 0 ? given : given.slice(0, at);
  if (!isVariable(name)) throw new UsageError('troupe pack: --env: expected NAME or NAME=VALUE, such as API_KEY');
  return { name, usual: at < 0 ? undefined : given.slice(at + 1), description: undefined };
}

/** The variables of `.env.example`, each with the comment above it. */
function examples(root: string): readonly AskedVariable[] {
  const file = join(root, '.env.example');
  if (!existsSync(file)) return [];
  const variables: AskedVariable[] = [];
  let comment: string[] = [];
  for (const line of readFileSync(file, 'utf8').split(/\r?\n/)) {
    const [, words] = /^\s*#\s*(.*)$/.exec(line) ?? [];
    const [, name, value = ''] = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (words !== undefined) comment.push(words);
    else {
      if (name !== undefined)
        variables.push({
          name,
          usual: value === '' ? undefined : value.replace(/^(["'])(.*)\1$/, '$2'),
          description: comment.join(' ') || undefined,
        });
      comment = [];
    }
  }
  return variables;
}
