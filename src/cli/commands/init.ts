/** `troupe init [DIR]`: creates a small project that runs and passes its test. It changes no file that exists. */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageFile, packageVersion } from '../../core/kernel/package-files.ts';
import { absolutePath, type CommandIo, type ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { containerFiles } from '../setup/container-files.ts';
import { installedFrom } from '../setup/installed-from.ts';
import { packageName, projectFiles } from '../setup/project-files.ts';
import { print, UsageError } from '../usage.ts';

/** The version of Node that the image of a container has: the one with long support. */
const CONTAINER_NODE = 22;

const HELP = `Usage: troupe init [DIR]
       troupe init --container [DIR]

Creates a project in DIR (default: this directory): server.ts with one tool,
server.test.ts, package.json and tsconfig.json. It changes no file that exists.

  --container   add a Dockerfile and a .dockerignore to the project in DIR
`;

/** The programs that a container serves, the first that there is. */
const PROGRAMS = ['server.ts', 'server.js', 'server.mjs'];

/** Runs the command. @throws {UsageError} if a file of the project exists */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('init', args, { container: '' });
  if (!line) return print(io, HELP);
  const [directory = '.', ...more] = line.positionals;
  if (more.length > 0)
    throw new UsageError(
      `troupe init: expected one DIR, got ${line.positionals.length}: ${line.positionals.join(' ')}`,
    );
  const target = absolutePath(io, directory);
  if (line.values.container !== undefined) return addContainer(target, directory, io);
  const troupe = installedFrom(dirname(fileURLToPath(packageFile('package.json'))), packageVersion());
  const files = projectFiles(packageName(basename(target)), troupe);
  const present = Object.keys(files).filter((file) => existsSync(join(target, file)));
  // A repository has a .gitignore before it has a project.
  const taken = present.filter((file) => file !== '.gitignore');
  if (taken.length > 0)
    throw new UsageError(
      `troupe init: expected a directory without ${taken.join(', ')}, and ${directory} contains ${taken.length === 1 ? 'it' : 'them'}. Choose another directory`,
    );
  mkdirSync(target, { recursive: true });
  const created = Object.entries(files).filter(([file]) => !present.includes(file));
  for (const [file, text] of created) writeFileSync(join(target, file), text, { flag: 'wx' });
  const here = relative(io.cwd, target);
  const others = readdirSync(target).length - created.length;
  return print(
    io,
    `Created ${created.map(([file]) => file).join(', ')} in ${here === '' ? 'this directory' : here}${others > 0 ? ` (other files there are unchanged)` : ''}.
${troupe.startsWith('file:') ? `package.json installs troupe from ${troupe.slice(5)}, as this copy is.\n` : ''}
${here === '' ? '' : `  cd ${here}\n`}  npm install
  npm test                        run the test
  npx troupe dev server.ts        serve, reload on save, open the inspector
  npx troupe install server.ts    give the server to an MCP client
`,
  );
}

/** Adds the files of a container to a project. @throws {UsageError} if the directory has no project, or has such a file */
function addContainer(target: string, directory: string, io: CommandIo): number {
  const program = PROGRAMS.find((file) => existsSync(join(target, file)));
  if (!existsSync(join(target, 'package.json')) || program === undefined)
    throw new UsageError(
      `troupe init: --container: expected a project with package.json and ${PROGRAMS.join(' or ')} in ${directory}. Run troupe init first`,
    );
  const files = Object.entries(containerFiles(program, CONTAINER_NODE));
  const taken = files.flatMap(([file]) => (existsSync(join(target, file)) ? file : []));
  if (taken.length > 0)
    throw new UsageError(
      `troupe init: --container: ${directory} has ${taken.join(', ')} already, which stays as it is`,
    );
  for (const [file, text] of files) writeFileSync(join(target, file), text, { flag: 'wx' });
  return print(
    io,
    `Created ${files.map(([file]) => file).join(', ')}.

  docker build -t my-server .
  docker run -p 3000:3000 -v my-server:/data my-server

Clients reach the server by a name: createServer({ http: { allowedHosts: ['mcp.example.com'] } }).
A package-lock.json is needed: npm install writes it.
`,
  );
}
