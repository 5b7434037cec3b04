/** A hook of Node's module loader: the modules that a module imports are of its own generation, so that a reload is whole. Imports nothing: it may run in Node's own thread. */

/** What the main thread lends to a hook in a thread of its own. */
export interface HookData {
  /** Where the urls of loaded modules go. */
  readonly port: { postMessage(url: string): void };
  /** See {@link inherit}. */
  readonly asModules: boolean;
  readonly own: string;
}

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

/** This package's own code is shared by all generations, also where it is imported by path, and also another copy of it. */
const OWN_NAME = /^troupe(?:\/|$)/;

let tell: (url: string) => void = () => {};
let asModules = false;
/** Where this package's own code begins. Until it is told, nothing does. */
let home: string | undefined;

/** Called by Node in the hooks' thread. */
export function initialize(data: HookData): void {
  inherit(data.asModules, data.own, (url) => data.port.postMessage(url));
}

/**
 * Prepares the hook.
 *
 * @param typescriptAsModules a `.ts` file is an ES module whatever its package.json says: this package is one, so that what
 *   imports it had better be one too, and a file in a directory without package.json can await at its top level
 * @param own the beginning of the urls of this package's own code
 * @param told hears the url of each module of a later generation than the first
 */
export function inherit(typescriptAsModules: boolean, own: string, told: (url: string) => void): void {
  home = own;
  asModules ||= typescriptAsModules;
  tell = told;
}

/** The hook where Node runs hooks in a thread of their own (before Node 22.15). */
export async function resolve(specifier: string, context: Context, next: Next<Promise<Resolved>>): Promise<Resolved> {
  return settle(await next(bare(specifier), context), specifier, context);
}

/** The hook where Node runs hooks in the thread that imports. There it hears `require` too, which knows no generations. */
export function resolveHere(specifier: string, context: Context, next: Next<Resolved>): Resolved {
  if (context.conditions?.includes('require')) return next(specifier, context);
  return settle(next(bare(specifier), context), specifier, context);
}

function settle(resolved: Resolved, specifier: string, { parentURL }: Context): Resolved {
  const asked = generation(specifier);
  const { url } = resolved;
  if (!url.startsWith('file:')) return resolved;
  // Packages outlive reloads: they do not change while somebody works on a tool, and a second copy of one would be a stranger to the first.
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

/** tsx calls a file CommonJS when its package.json names no type; Node itself looks at what is in it. */
function format({ url, format }: Resolved, generation: string | undefined): string | null | undefined {
  if (format !== 'commonjs') return format;
  const { pathname } = new URL(url);
  if (pathname.endsWith('.js')) return undefined;
  return pathname.endsWith('.ts') && (asModules || generation !== undefined) ? 'module' : format;
}

function generation(url: string): string | undefined {
  return GENERATION.exec(url)?.[2];
}

/** Without its generation, which other hooks would take for a part of its name. */
function bare(specifier: string): string {
  return specifier.replace(GENERATION, (_, before: string, __, after: string) => (after === '' ? '' : before));
}
