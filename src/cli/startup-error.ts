/** Describes in one line why a program fails to start, with the file and line of the author's code. It never shows a stack frame of Node, of a package or of Troupe. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN } from '../core/kernel/package-files.ts';
import { messageOf, stackOf } from '../core/protocol/json.ts';

/** Errors whose names add nothing to their messages. */
const PLAIN: ReadonlySet<string> = new Set([
  ...['Error', 'DefinitionError', 'SchemaError', 'TemplateError', 'StoreError', 'ConfigurationError'],
]);

/** A location in a stack: `file:///a/b.ts:3:7`, `/a/b.ts:3`. A reload adds `?troupe=2` to the path. */
const LOCATION = /(file:\/\/\/?[^\s?()]+?|(?:\/|[A-Za-z]:\\)[^\n?():]*?)(?:\?[^\s:]*)?:(\d+(?::\d+)?)(?=$|[\s)])/;

/** The maximum number of modules that are checked one by one to find a syntax error. */
const MAX_CHECKED = 20;
/** The time limit for checking one module, in milliseconds. */
const CHECK_MS = 5_000;

/**
 * @param path the program: Node does not report the location of a syntax error in a JavaScript module
 * @example startupError(error, '/app/server.ts') // no database (at /app/db.ts:3:7)
 */
export function startupError(error: unknown, path?: string): string {
  if (!(error instanceof Error)) return oneLine(messageOf(error));
  const message = missingPackage(messageOf(error)) ?? otherName(messageOf(error)) ?? messageOf(error);
  const text = oneLine(PLAIN.has(error.name) ? message : `${error.name}: ${message}`);
  const location = locationIn(stackOf(error)) ?? (error instanceof SyntaxError ? findSyntaxError(path) : undefined);
  return location === undefined || text.includes(location) ? text : `${text} (at ${location})`;
}

/** The optional packages that Troupe's entry points import, with these entry points. */
const PEERS: Readonly<Record<string, string>> = {
  jose: 'troupe/oauth, or fakeIssuer() of troupe/testing,',
  '@opentelemetry/api': 'troupe/otel',
};

/** The error of Node for a package that an ES module imports, or a CommonJS module requires. */
const MISSING =
  /^Cannot find (?:package '([^'\n]+)' imported from (\S.*)|module '([^'\n]+)'\nRequire stack:\n- (\S.*))/;

/** The name of a package, with its scope. */
const PACKAGE = /^(?:@[a-z0-9._-]+\/)?[a-z0-9][a-z0-9._-]*$/;

/** The message for a program that imports a package which is not installed, or an entry point of Troupe that needs one. */
function missingPackage(message: string): string | undefined {
  const [found, imported, importer, required, requirer] = MISSING.exec(message) ?? [];
  const [name = '', by = ''] = [imported ?? required, importer ?? requirer];
  const entry = Object.hasOwn(PEERS, name) && by.startsWith(fileURLToPath(OWN)) ? PEERS[name] : undefined;
  if (entry) return `${entry} needs the package ${name}, which is not installed: npm install ${name}`;
  // The program requires a module by its path, or by an alias of its bundler.
  if (found === undefined || !PACKAGE.test(name)) return undefined;
  return `${message}. If it is a package, install it: npm install ${name}`;
}

/** Methods of other libraries for servers, and what to write here. */
const NAMES: Readonly<Record<string, string>> = {
  registerTool: 'server.tool(name, options, handler)',
  addTool: 'server.tool(name, options, handler)',
  registerResource: 'server.resource(uri, options, handler)',
  addResource: 'server.resource(uri, options, handler)',
  registerPrompt: 'server.prompt(name, options, handler)',
  addPrompt: 'server.prompt(name, options, handler)',
  connect: 'server.listen(stdio())',
};

/** The message for a call of a method that the servers of another library have. */
function otherName(message: string): string | undefined {
  const [found, method = ''] = /^[\w$.]+\.(\w+) is not a function$/.exec(message) ?? [];
  return found !== undefined && Object.hasOwn(NAMES, method) ? `${message}: write ${NAMES[method]}` : undefined;
}

function oneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ');
}

/** The first location in a stack that belongs to the author's code. */
function locationIn(stack: string): string | undefined {
  const lines = stack.split('\n');
  // The error of a module that does not link starts with its location. Later lines of a message may name any file.
  const [first = '', ...rest] = lines;
  const candidates = [
    ...(LOCATION.exec(first)?.index === 0 ? [first] : []),
    ...rest.filter((line) => /^\s+at /.test(line)),
  ];
  for (const line of candidates) {
    if (/node:|\/node_modules\/|\(<anonymous>\)$/.test(line) || line.includes(OWN) || line.includes(fileURLToPath(OWN)))
      continue;
    const [, file = '', at = ''] = LOCATION.exec(line) ?? [];
    if (file !== '') return `${file.startsWith('file:') ? fileURLToPath(file) : file}:${at}`;
  }
  return undefined;
}

/** Checks the syntax of a module and of its relative imports without running them. @returns the location of the first error */
function findSyntaxError(path: string | undefined): string | undefined {
  const pending = path === undefined ? [] : [path];
  const seen = new Set<string>();
  for (let file = pending.pop(); file !== undefined && seen.size < MAX_CHECKED; file = pending.pop()) {
    if (seen.has(file) || !existsSync(file) || !/\.[cm]?js$/.test(file)) continue;
    seen.add(file);
    const { status, stderr } = spawnSync(process.execPath, ['--check', file], { encoding: 'utf8', timeout: CHECK_MS });
    const location = status === 0 ? undefined : LOCATION.exec(stderr.split('\n')[0] ?? '');
    if (location) return `${file}:${location[2]}`;
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import)\s*['"](\.[^'"\n]+)['"]/g))
      pending.push(resolve(dirname(file), specifier));
  }
  return undefined;
}
