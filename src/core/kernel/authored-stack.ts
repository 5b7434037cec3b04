/** Formats a thrown value with its stack for the author: the author's frames first, all other frames counted. */
import { readFileSync, statSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stackOf } from '../protocol/json.ts';
import { OWN } from './package-files.ts';

/** Longest text, in characters: a message of an author's error has any length. */
const MAX_LENGTH = 16_384;
/** Maximum number of causes that are followed. */
const MAX_CAUSES = 4;
/** Maximum number of files whose source maps are cached. */
const MAX_MAPS = 100;

/** The directories of this package's code: the bundles, and the sources to which their source maps point. */
const HOMES: readonly string[] = [OWN, new URL('../../src/', OWN).href, new URL('../../../machines/', OWN).href].map(
  pathOf,
);

/**
 * The stack of a thrown value, with the source maps of the author's files applied: those that Node applies, and those
 * beside compiled JavaScript, which Node ignores without `--enable-source-maps`.
 *
 * @returns the message, the author's frames, and one line such as `… 7 frames of troupe, 3 of node`, which names the first
 *   of them if no frame is the author's; all frames if none is of Troupe either. Then the causes in the same form. Never throws
 */
export function authoredStack(thrown: unknown): string {
  try {
    return shortened(readable(thrown));
  } catch {
    // An author can break what this file uses, for example the iteration of arrays. The log still gets the error.
    return shortened(stackOf(thrown));
  }
}

function readable(thrown: unknown): string {
  const parts = [folded(stackOf(thrown))];
  for (let cause = causeOf(thrown); cause !== undefined && parts.length <= MAX_CAUSES; cause = causeOf(cause))
    parts.push(`  caused by: ${folded(stackOf(cause))}`);
  return parts.join('\n');
}

function shortened(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}

function causeOf(thrown: unknown): unknown {
  try {
    return thrown instanceof Error ? thrown.cause : undefined;
  } catch {
    return undefined;
  }
}

function folded(stack: string): string {
  const lines = stack.split('\n');
  // Frames end the text: a line of the message may look like a frame.
  let first = lines.length;
  while (first > 0 && isFrame(lines[first - 1] ?? '')) first -= 1;
  const { authored, own, text } = foldedFrames(lines.slice(first));
  return authored || own ? [...lines.slice(0, first), text].join('\n') : stack;
}

/**
 * Folds the frames of a stack as {@link authoredStack} does.
 *
 * @param frames the lines of a stack, without its message
 * @returns `authored`: one of them is the author's. `own`: one of them is of this package. `text`: the author's frames and
 *   a count of the others; all frames if none is the author's or of this package. `files`: the paths of the author's files
 */
export function foldedFrames(frames: readonly string[]): {
  authored: boolean;
  own: boolean;
  text: string;
  files: readonly string[];
} {
  const authored: string[] = [];
  const files = new Set<string>();
  const others = new Map<string, number>();
  for (const line of frames) {
    const frame = mapped(line);
    const owner = ownerOf(frame.place);
    if (owner === undefined) {
      authored.push(frame.text);
      files.add(frame.place.replace(/(?::\d+){1,2}$/, ''));
    } else others.set(owner, (others.get(owner) ?? 0) + 1);
  }
  const own = others.has('troupe');
  const counted = authored.length > 0 ? [...authored, ...summary(others)] : own ? inside(frames, others) : frames;
  return { authored: authored.length > 0, own, text: counted.join('\n'), files: [...files] };
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line);
}

interface Frame {
  readonly text: string;
  /** `/path/server.ts:3:5`; empty for a frame without a file. */
  readonly place: string;
}

/** A line of a stack, with the path in the form that terminals and editors open. */
function mapped(line: string): Frame {
  const [, head = line, found = '', tail = ''] =
    /^(.*?(?:\(|at (?:async )?))([a-z]+:[^()]+|\/[^()]+|[A-Z]:\\[^()]+)(\)?)$/.exec(line) ?? [];
  const place = pathOf(found);
  const origin = ownerOf(place) === undefined ? originOf(place) : undefined;
  return { text: `${head}${origin ?? place}${tail}`, place: origin ?? place };
}

/** The package of a frame's code, `troupe` or `node`; undefined for the author's code. */
function ownerOf(place: string): string | undefined {
  if (place === '' || place.startsWith('node:')) return 'node';
  if (HOMES.some((home) => place.startsWith(home))) return 'troupe';
  return place.match(/.*[/\\]node_modules[/\\]((?:@[^/\\]+[/\\])?[^/\\]+)/)?.[1];
}

/** The path of a place, without the generation that `troupe dev` adds to the URLs of reloaded modules. */
function pathOf(place: string): string {
  const [, url = place, position = ''] = /^(.*?)((?::\d+){0,2})$/.exec(place) ?? [];
  if (!url.startsWith('file:')) return place;
  try {
    return `${fileURLToPath(url.replace(/\?.*$/, ''))}${position}`;
  } catch {
    return place;
  }
}

/** The source map of a compiled file at one time; without `map` if there is none. */
interface CachedMap {
  readonly changed: number;
  readonly map?: SourceMap;
  /** The URL to which the names of its sources are relative. */
  readonly base: string;
}

/** By the compiled file. */
const maps = new Map<string, CachedMap>();

/** The place in the source of a compiled file, if the file names a source map. Never throws. */
function originOf(place: string): string | undefined {
  const [, file = '', line = '', column = ''] = /^(.*\.[cm]?js):(\d+):(\d+)$/.exec(place) ?? [];
  if (file === '') return undefined;
  const { map, base } = mapOf(file);
  const entry = map?.findEntry(Number(line) - 1, Number(column) - 1);
  if (!entry || !('originalSource' in entry) || !URL.canParse(entry.originalSource, base)) return undefined;
  const { originalSource, originalLine, originalColumn } = entry;
  return `${pathOf(new URL(originalSource, base).href)}:${originalLine + 1}:${originalColumn + 1}`;
}

/** Never throws: without a readable map, a frame shows the compiled file. */
function mapOf(file: string): CachedMap {
  let changed = 0;
  try {
    changed = statSync(file).mtimeMs;
    const known = maps.get(file);
    if (known?.changed === changed) return known;
    const found: CachedMap = { changed, base: '', ...readMap(file) };
    if (maps.size >= MAX_MAPS) maps.clear();
    maps.set(file, found);
    return found;
  } catch {
    return { changed, base: '' };
  }
}

function readMap(file: string): Pick<CachedMap, 'map' | 'base'> | undefined {
  const here = pathToFileURL(file);
  const [, url] = [...readFileSync(file, 'utf8').matchAll(/^\/\/[#@] sourceMappingURL=(\S+)\s*$/gm)].at(-1) ?? [];
  if (url === undefined) return undefined;
  const inline = /^data:application\/json[^,]*;base64,(.*)$/.exec(url)?.[1];
  const at = inline === undefined ? new URL(url, here) : here;
  const text = inline === undefined ? readFileSync(at, 'utf8') : Buffer.from(inline, 'base64').toString();
  const payload: SourceMapPayload = JSON.parse(text);
  const root = payload.sourceRoot?.replace(/([^/])$/, '$1/') ?? '';
  return { map: new SourceMap(payload), base: new URL(root, at).href };
}

function summary(others: ReadonlyMap<string, number>): readonly string[] {
  if (others.size === 0) return [];
  const counts = [...others]
    .sort(([a], [b]) => rankOf(a) - rankOf(b))
    .map(([owner, count], index) =>
      index > 0 ? `${count} of ${owner}` : `${count} ${count === 1 ? 'frame' : 'frames'} of ${owner}`,
    );
  return [`    … ${counts.join(', ')}`];
}

/** One line for a stack in which no frame is the author's: a count, and the innermost frame for a report. */
function inside(frames: readonly string[], others: ReadonlyMap<string, number>): readonly string[] {
  const first = frames.map((line) => mapped(line)).find(({ place }) => ownerOf(place) === 'troupe');
  return summary(others).map((line) => `${line}; the first of troupe: ${first?.text.trim() ?? ''}`);
}

/** Troupe's frames come first, those of packages next, those of Node last. */
function rankOf(owner: string): number {
  if (owner === 'troupe') return 0;
  return owner === 'node' ? 2 : 1;
}
