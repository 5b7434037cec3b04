/** The declarations of the sources by name, so that a broken build says which of them it breaks and not where it stands. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import type { BrokenBuild } from './broken-build.ts';

type Program = ReturnType<typeof parseAst>;
type Statement = Program['body'][number];

/** A part of a file: from its first character to behind its last. */
interface Part {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

export class Declarations {
  readonly #texts = new Map<string, string>();
  /** The files that declare a class. */
  readonly #classes = new Map<string, string[]>();
  /** Of each file that was parsed, by name. Overloads, and the getter and setter of a property, share a name. */
  readonly #parsed = new Map<string, ReadonlyMap<string, readonly Part[]>>();
  readonly #bare = new Map<string, string>();

  /** Reads `src` and `machines` of a copy of the repository. */
  constructor(root: string) {
    for (const folder of ['src', 'machines'])
      for (const file of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort()) {
        if (!file.endsWith('.ts')) continue;
        const path = join(folder, file);
        const text = readFileSync(join(root, path), 'utf8');
        this.#texts.set(path, text);
        for (const [, name = ''] of text.matchAll(CLASS))
          this.#classes.set(name, [...(this.#classes.get(name) ?? []), path]);
      }
  }

  /**
   * The file that a broken build changes, and its changed text.
   *
   * @throws Error if no declaration or those of several files have the name, if the expression is not in it exactly once
   * (white space does not count), or if the changed file is not a module
   */
  broken({ in: name, find, replace, why }: BrokenBuild): { readonly path: string; readonly text: string } {
    const parts = this.#partsOf(name);
    const paths = [...new Set(parts.map(({ path }) => path))];
    const [path] = paths;
    if (path === undefined) throw new Error(`"${why}": nothing declares ${name}`);
    if (paths.length > 1) throw new Error(`"${why}": ${name} is declared by ${paths}; write "FILE.ts: ${name}"`);
    const text = this.#texts.get(path) ?? '';
    const places = parts.flatMap((part) => placesOf(text, part, find));
    const [place] = places;
    if (!place || places.length > 1)
      throw new Error(`"${why}": expected once in ${name} of ${path}, found ${places.length} times: ${find}`);
    const changed = text.slice(0, place.start) + replace + text.slice(place.end);
    try {
      parseAst(changed, { lang: 'ts' });
    } catch (error) {
      throw new Error(`"${why}": ${path} does not parse once it is broken`, { cause: error });
    }
    return { path, text: changed };
  }

  /**
   * Whether the text of the only file that may declare the name has the name, and the expression exactly once. A parser also knows
   * where the declaration ends, but takes most of the processor time. False if the text does not decide.
   */
  shows({ in: name, find }: BrokenBuild): boolean {
    const { declaration, paths } = this.#filesOf(name);
    const [path = ''] = paths;
    if (paths.length !== 1) return false;
    const bare = this.#bareOf(path);
    const wanted = find.replaceAll(SPACE, '');
    const first = bare.indexOf(wanted);
    return (
      first !== -1 &&
      bare.indexOf(wanted, first + 1) === -1 &&
      declaration.split('.').every((word) => bare.includes(word))
    );
  }

  #bareOf(path: string): string {
    const known = this.#bare.get(path);
    if (known !== undefined) return known;
    const bare = (this.#texts.get(path) ?? '').replaceAll(SPACE, '');
    this.#bare.set(path, bare);
    return bare;
  }

  /** The files that may declare a name. To parse all files would take most of the time. @param name of a declaration, or `FILE: NAME` */
  #filesOf(name: string): { readonly declaration: string; readonly paths: readonly string[] } {
    const [declaration = '', file = ''] = name.split(': ').reverse();
    const [outer = '', member] = declaration.split('.');
    const begins = new RegExp(`${KEYWORD}[^;(]*\\b${outer}\\b`, 'm');
    const mayDeclare = (path: string): boolean => {
      const text = this.#texts.get(path) ?? '';
      return text.includes(outer) && (member !== undefined || begins.test(text));
    };
    const all = member === undefined ? [...this.#texts.keys()] : (this.#classes.get(outer) ?? []);
    return { declaration, paths: all.filter((path) => (file === '' || basename(path) === file) && mayDeclare(path)) };
  }

  #partsOf(name: string): readonly Part[] {
    const { declaration, paths } = this.#filesOf(name);
    return paths.flatMap((path) => this.#parse(path).get(declaration) ?? []);
  }

  #parse(path: string): ReadonlyMap<string, readonly Part[]> {
    const known = this.#parsed.get(path);
    if (known) return known;
    const parts = new Map<string, Part[]>();
    for (const statement of parseAst(this.#texts.get(path) ?? '', { lang: 'ts' }).body)
      for (const [name, { start, end }] of declared(statement))
        parts.set(name, [...(parts.get(name) ?? []), { path, start, end }]);
    this.#parsed.set(path, parts);
    return parts;
  }
}

type Named = readonly [name: string, node: { readonly start: number; readonly end: number }];

/** What a statement of a module declares: functions, variables, imported names, classes, and each member of a class. */
function declared(statement: Statement): readonly Named[] {
  switch (statement.type) {
    case 'ImportDeclaration':
      return statement.specifiers.map((specifier) => [specifier.local.name, specifier]);
    case 'ExportNamedDeclaration':
    case 'ExportDefaultDeclaration':
      return statement.declaration ? declared(statement.declaration as Statement) : [];
    case 'FunctionDeclaration':
      return statement.id ? [[statement.id.name, statement]] : [];
    case 'VariableDeclaration':
      return statement.declarations.flatMap(({ id }) => namesOf(id).map((name) => [name, statement] as const));
    case 'ClassDeclaration': {
      const name = statement.id?.name;
      if (name === undefined) return [];
      return [
        [name, statement],
        ...statement.body.body.flatMap((member) => {
          if (!('key' in member) || member.computed) return [];
          if (member.key.type === 'PrivateIdentifier') return [[`${name}.#${member.key.name}`, member] as const];
          return member.key.type === 'Identifier' ? [[`${name}.${member.key.name}`, member] as const] : [];
        }),
      ];
    }
    default:
      return [];
  }
}

/** The names that a variable or a pattern of an object declares. */
function namesOf(pattern: { readonly type: string; readonly name?: string }): readonly string[] {
  if (pattern.type === 'Identifier' && pattern.name !== undefined) return [pattern.name];
  if (pattern.type !== 'ObjectPattern' || !('properties' in pattern)) return [];
  const properties = pattern.properties as readonly { readonly value?: Parameters<typeof namesOf>[0] }[];
  return properties.flatMap(({ value }) => (value ? namesOf(value) : []));
}

const CLASS = /^(?:export )?(?:default )?(?:abstract )?class (\w+)/gm;
/** The beginning of a statement that declares or imports names. */
const KEYWORD = '^(?:export )?(?:default )?(?:abstract |async )*(?:function\\b|class |const |let |import )';
const SPACE = /\s+/g;
const SPACES: ReadonlySet<string> = new Set(' \t\n\r');

/** Where an expression stands in a part of a file, white space aside. */
function placesOf(text: string, part: Part, find: string): readonly { readonly start: number; readonly end: number }[] {
  const at: number[] = [];
  let bare = '';
  for (let index = part.start; index < part.end; index++) {
    const character = text[index] ?? '';
    if (SPACES.has(character)) continue;
    bare += character;
    at.push(index);
  }
  const wanted = find.replace(/\s/g, '');
  const places = [];
  for (let found = bare.indexOf(wanted); found !== -1; found = bare.indexOf(wanted, found + 1))
    places.push({ start: at[found] ?? 0, end: (at[found + wanted.length - 1] ?? 0) + 1 });
  return places;
}
