/**
 * A package registry on loopback: it serves the packed Troupe, and the packages of this clone at the versions of its lock file. A
 * real npm installs from it without a network.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FOLDER = 'node_modules/';

/** What npm reads of a version: dependencies, platforms, commands. Other members pass through. */
const Version = z.looseObject({ version: z.string() });
const Lock = z.object({ packages: z.record(z.string(), z.looseObject({ version: z.string().optional() })) });
const Packed = z.tuple([z.object({ filename: z.string() })]);

interface Package {
  readonly manifest: z.infer<typeof Version>;
  /** The folder of the installed package, or the packed file. */
  readonly source: string;
}

export interface Registry {
  readonly url: string;
  /** The file that `npm pack` made. */
  readonly tarball: string;
  close(): Promise<void>;
}

/** @param folder where the packed Troupe is written */
export async function serveRegistry(folder: string): Promise<Registry> {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const output = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [{ filename }] = Packed.parse(JSON.parse(output));
  const tarball = join(folder, filename);
  const packages = lockedPackages();
  const manifest = Version.parse(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')));
  packages.set('troupe', [{ manifest, source: tarball }]);

  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(1));
    const [name = '', version] = path.split('/-/');
    const found = packages.get(name);
    if (!found) return void response.writeHead(404).end('{}');
    if (version === undefined) return void response.end(JSON.stringify(packument(name, found, url)));
    const file = found.find((each) => each.manifest.version === version);
    if (!file || !existsSync(file.source)) return void response.writeHead(404).end('{}');
    sendTarball(file.source, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (!address || typeof address === 'string') throw new Error('no port');
  const url = `http://127.0.0.1:${address.port}`;
  return {
    url,
    tarball,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The versions of each package in the lock file. A package is there more than once if its users need different versions. */
function lockedPackages(): Map<string, Package[]> {
  const { packages } = Lock.parse(JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')));
  const named = new Map<string, Package[]>();
  for (const [path, { integrity: _, ...entry }] of Object.entries(packages)) {
    const name = path.slice(path.lastIndexOf(FOLDER) + FOLDER.length);
    const manifest = Version.safeParse({ ...entry, name });
    if (!path.includes(FOLDER) || !manifest.success) continue;
    named.set(name, [...(named.get(name) ?? []), { manifest: manifest.data, source: join(ROOT, path) }]);
  }
  return named;
}

function packument(name: string, found: readonly Package[], url: string): object {
  const versions = found.map(({ manifest }) => {
    const dist = { tarball: `${url}/${name}/-/${manifest.version}` };
    return [manifest.version, { ...manifest, name, dist }] as const;
  });
  return { name, 'dist-tags': { latest: found[0]?.manifest.version }, versions: Object.fromEntries(versions) };
}

/** Sends an archive of an installed folder without compression, which npm reads too, or the packed file as it is. */
function sendTarball(source: string, response: ServerResponse): void {
  if (source.endsWith('.tgz')) return void response.end(readFileSync(source));
  const tar = spawn('tar', ['-cf', '-', '--exclude=./node_modules', '-C', source, '--transform=s,^\\.,package,', '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  tar.stdout.pipe(response);
}
