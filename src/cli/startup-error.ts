/** Describes in one line why a program cannot be started, and where in the author's code. It never shows a frame of Node, of a package or of ours. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN } from '../package-files.ts';
import { messageOf, stackOf } from '../protocol/json.ts';

/** Errors whose name says nothing that their message does not. */
const PLAIN: ReadonlySet<string> = new Set(['Error', 'DefinitionError', 'SchemaError', 'TemplateError', 'StoreError']);

/** Where a stack names a line of a file: `file:///a/b.ts:3:7`, `/a/b.ts:3`; a reload adds `?troupe=2`. */
const PLACE = /(file:\/\/\/?[^\s?()]+?|(?:\/|[A-Za-z]:\\)[^\n?():]*?)(?:\?[^\s:]*)?:(\d+(?::\d+)?)(?=$|[\s)])/;

/** Most modules of a program whose syntax is checked one by one, to find the one that is wrong. */
const MOST_CHECKED = 20;
/** Milliseconds that the check of one module may take. */
const CHECK_MS = 5_000;

/**
 * @param path the program, if there is one: Node does not say where the syntax of a JavaScript module is wrong
 * @example startupError(error, '/app/server.ts') // no database (at /app/db.ts:3:7)
 */
export function startupError(error: unknown, path?: string): string {
  if (!(error instanceof Error)) return oneLine(messageOf(error));
  const message = messageOf(error);
  const said = oneLine(PLAIN.has(error.name) ? message : `${error.name}: ${message}`);
  const place = placeIn(stackOf(error)) ?? (error instanceof SyntaxError ? wrongSyntax(path) : undefined);
  return place === undefined || said.includes(place) ? said : `${said} (at ${place})`;
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ');
}

/** The first line of the author's code that a stack names. */
function placeIn(stack: string): string | undefined {
  const lines = stack.split('\n');
  // A module that does not link has its place above the message; a message may name any file.
  const [first = '', ...rest] = lines;
  const candidates = [
    ...(PLACE.exec(first)?.index === 0 ? [first] : []),
    ...rest.filter((line) => /^\s+at /.test(line)),
  ];
  for (const line of candidates) {
    if (/node:|\/node_modules\/|\(<anonymous>\)$/.test(line) || line.includes(OWN) || line.includes(fileURLToPath(OWN)))
      continue;
    const [, file = '', at = ''] = PLACE.exec(line) ?? [];
    if (file !== '') return `${file.startsWith('file:') ? fileURLToPath(file) : file}:${at}`;
  }
  return undefined;
}

/** Checks the module and what it imports by a relative path, without running any of it. */
function wrongSyntax(path: string | undefined): string | undefined {
  const waiting = path === undefined ? [] : [path];
  const seen = new Set<string>();
  for (let file = waiting.pop(); file !== undefined && seen.size < MOST_CHECKED; file = waiting.pop()) {
    if (seen.has(file) || !existsSync(file) || !/\.[cm]?js$/.test(file)) continue;
    seen.add(file);
    const { status, stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MS });
    const place = status === 0 ? undefined : PLACE.exec(stderr.split('\n')[0] ?? '');
    if (place) return `${file}:${place[2]}`;
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*['"](\.[^'"\n]+)['"]/g))
      waiting.push(resolve(dirname(file), specifier));
  }
  return undefined;
}
