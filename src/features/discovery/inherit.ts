/**
 * A hook of Node's module loader: imports belong to the generation of the importing module, so that a reload is
 * complete. Imports nothing, because it may run in Node's hooks thread.
 */

/** Data for a hook that runs in its own thread. */
export interface HookData {
  /** Receives the URLs of loaded modules. */
  readonly port: { postMessage(url: string): void };
  /** See {@link inherit}. */
  readonly typescript: TypeScriptFormat | undefined;
  readonly own: string;
}

/** The format of a TypeScript module: tsx removes its types, or Node does. */
export type TypeScriptFormat = 'module' | 'module-typescript';

interface Context {
  readonly conditions?: readonly string[];
  readonly parentURL?: string | undefined;
}

interface Resolved {
  readonly url: string;
  readonly format?: string | null | undefined;
}

type Next<R> = (specifier: string, context: Context) => R;

const GENERATION = /([?&])troupe=(\d+)(&?)/;

/** All generations share this package's code, even if they import it by path or import another copy of it. */
const OWN_NAME = /^troupe(?:\/|$)/;

let tell: (url: string) => void = () => {};
let typescript: TypeScriptFormat | undefined;
/** Prefix of the URLs of this package's code. Undefined until `initialize` or `inherit` sets it. */
let home: string | undefined;

/** Called by Node in the hooks' thread. */
export function initialize(data: HookData): void {
  inherit(data.typescript, data.own, (url) => data.port.postMessage(url));
}

/**
 * Configures the hook.
 * @param asModules treat `.ts` files as ES modules of this format whatever their package.json says. This package is an
 *   ES module; a file without package.json can then use top-level await
 * @param own prefix of the URLs of this package's code
 * @param loaded called with the URL of each module of a later generation than the first
 */
export function inherit(asModules: TypeScriptFormat | undefined, own: string, loaded: (url: string) => void): void {
  home = own;
  typescript = asModules ?? typescript;
  tell = loaded;
}

/** The hook for Node versions that run hooks in a separate thread (before 22.15). */
export async function resolve(specifier: string, context: Context, next: Next<Promise<Resolved>>): Promise<Resolved> {
  return settle(await next(bare(specifier), context), specifier, context);
}

/**
 * The hook for Node versions that run hooks in the importing thread. It also receives `require` calls, which have no
 * generation.
 */
export function resolveHere(specifier: string, context: Context, next: Next<Resolved>): Resolved {
  if (context.conditions?.includes('require')) return next(specifier, context);
  return settle(next(bare(specifier), context), specifier, context);
}

function settle(resolved: Resolved, specifier: string, { parentURL }: Context): Resolved {
  const asked = generation(specifier);
  const { url } = resolved;
  if (!url.startsWith('file:')) return resolved;
  // Packages are not reloaded: they do not change while an author works on a tool, and two copies of a package would
  // not recognise each other's objects.
  if (
    asked === undefined &&
    (url.includes('/node_modules/') || (home !== undefined && url.startsWith(home)) || OWN_NAME.test(specifier))
  )
    return resolved;
  const own = asked ?? generation(parentURL ?? '');
  const settled = { ...resolved, format: format(resolved, own) };
  if (own === undefined || generation(url) !== undefined) return settled;
  tell(url);
  return { ...settled, url: `${url}${url.includes('?') ? '&' : '?'}troupe=${own}` };
}

/** tsx treats a file as CommonJS if its package.json names no type; Node itself inspects the file's content. */
function format({ url, format }: Resolved, generation: string | undefined): string | null | undefined {
  const { pathname } = new URL(url);
  if (typescript === 'module-typescript' && pathname.endsWith('.ts')) return typescript;
  if (format !== 'commonjs' && format !== 'commonjs-typescript') return format;
  if (pathname.endsWith('.js')) return undefined;
  return /\.tsx?$/.test(pathname) && (typescript !== undefined || generation !== undefined) ? 'module' : format;
}

function generation(url: string): string | undefined {
  return GENERATION.exec(url)?.[2];
}

/** Removes the generation, which other hooks would take for a part of the file name. */
function bare(specifier: string): string {
  return specifier.replace(GENERATION, (_, before: string, __, after: string) => (after === '' ? '' : before));
}
