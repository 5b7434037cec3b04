/**
 * Changes one entry in JSON that people edit: its comments, its layout and its other members stay as they are. The library
 * jsonc-parser changes the layout of the neighbours, and moves their comments behind the new entry.
 */
import { isDeepStrictEqual } from 'node:util';
import {
  type CommentedJson,
  editableJson,
  type MemberPlace,
  type ObjectPlace,
  readCommentedJson,
} from '../../core/codec/commented-json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';

/**
 * Sets, or removes, an entry of an object that is a member of the text's object.
 *
 * @param entry undefined removes it
 * @throws {CommentedJsonError} for a text that is not JSON
 * @throws {TypeError} if the text, or the member, is no object
 * @example withEntry('{ "servers": {} } // mine', 'servers', 'shop', { command: 'x' })
 */
export function withEntry(text: string, member: string, name: string, entry: JsonValue | undefined): string {
  const isBlank = text.trim() === '';
  const document = readCommentedJson(isBlank ? '{}' : text);
  const root = document.value;
  const entries = isJsonObject(root) ? (root[member] ?? {}) : undefined;
  if (!isJsonObject(root) || !isJsonObject(entries)) throw new TypeError('expected an object of entries');
  const { [name]: _, ...others } = entries;
  const after = { ...root, [member]: entry === undefined ? others : { ...entries, [name]: entry } };
  if (isBlank) return editableJson(after);
  if (entry === undefined && !Object.hasOwn(entries, name)) return text;
  const edited = new Editor(text, document, root).edit(member, name, entry);
  if (!isDeepStrictEqual(readCommentedJson(edited).value, after))
    throw new Error('the entry cannot be changed without changing others');
  return edited;
}

class Editor {
  readonly #text: string;
  readonly #document: CommentedJson;
  readonly #root: JsonObject;
  readonly #lineEnd: string;
  /** The indentation of one level. */
  readonly #unit: string;

  constructor(text: string, document: CommentedJson, root: JsonObject) {
    this.#text = text;
    this.#document = document;
    this.#root = root;
    this.#lineEnd = text.includes('\r\n') ? '\r\n' : '\n';
    const first = [...(document.placeOf(root)?.members.values() ?? [])].find(({ start }) => this.#beginsLine(start));
    this.#unit = (first && this.#indentation(first.start)) || '  ';
  }

  edit(member: string, name: string, entry: JsonValue | undefined): string {
    const entries = this.#root[member];
    const list = isJsonObject(entries) ? this.#document.placeOf(entries) : undefined;
    const present = list?.members.get(name);
    if (entry === undefined) return list && present ? this.#removed(list, present) : this.#text;
    if (list && present)
      return this.#replaced(present.value, present.end, this.#shown(entry, this.#indentation(present.start)));
    if (list) return this.#inserted(list, name, entry);
    const before = this.#document.placeOf(this.#root);
    const absent = before?.members.get(member);
    // The member is null.
    if (absent)
      return this.#replaced(absent.value, absent.end, this.#shown({ [name]: entry }, this.#indentation(absent.start)));
    return before ? this.#inserted(before, member, { [name]: entry }) : this.#text;
  }

  #replaced(from: number, to: number, by: string): string {
    return this.#text.slice(0, from) + by + this.#text.slice(to);
  }

  /** Adds a member as the last one, behind the comments of the others. */
  #inserted({ open, close, members }: ObjectPlace, name: string, value: JsonValue): string {
    const text = this.#text;
    const last = [...members.values()].at(-1);
    const outer = this.#indentation(open);
    const indent = last && this.#beginsLine(last.start) ? this.#indentation(last.start) : outer + this.#unit;
    const end = text.slice(0, close).replace(/[ \t\r\n]+$/, '').length;
    const split = last?.end ?? open + 1;
    const comma = last && last.comma === undefined ? ',' : '';
    const trailing = last?.comma === undefined ? '' : ',';
    const added = `${this.#lineEnd}${indent}${this.#shown(name, '')}: ${this.#shown(value, indent)}${trailing}`;
    return `${text.slice(0, split)}${comma}${text.slice(split, end)}${added}${this.#lineEnd}${outer}${text.slice(close)}`;
  }

  #removed({ members }: ObjectPlace, { start, end, comma }: MemberPlace): string {
    const text = this.#text;
    const before = comma === undefined ? [...members.values()].at(-2)?.comma : undefined;
    const stop = comma === undefined ? end : comma + 1;
    const rest = /^[ \t]*\r?\n/.exec(text.slice(stop))?.[0];
    const isWhole = this.#beginsLine(start) && rest !== undefined;
    const from = isWhole ? start - this.#indentation(start).length : start;
    const kept = before === undefined ? text.slice(0, from) : text.slice(0, before) + text.slice(before + 1, from);
    return kept + text.slice(isWhole ? stop + rest.length : stop);
  }

  /** A value as text, whose further lines have an indentation. */
  #shown(value: JsonValue, indent: string): string {
    const lines = editableJson(value).trimEnd().split('\n');
    return lines
      .map((line) => line.replace(/^(?: {2})+/, (spaces) => this.#unit.repeat(spaces.length / 2)))
      .join(this.#lineEnd + indent);
  }

  #indentation(at: number): string {
    return /^[ \t]*/.exec(this.#text.slice(this.#lineStart(at)))?.[0] ?? '';
  }

  #beginsLine(at: number): boolean {
    return this.#lineStart(at) + this.#indentation(at).length === at;
  }

  #lineStart(at: number): number {
    return Math.max(this.#text.lastIndexOf('\n', at - 1) + 1, this.#text.startsWith('\ufeff') ? 1 : 0);
  }
}
