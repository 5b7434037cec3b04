/** The directories of the served skills: the direct children of each, as one caller sees them. */
import type { ListView } from '../../core/messages/authorization-rule.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { DIRECTORY_TYPE, type SkillEntry } from '../../core/protocol/skills.ts';
import type { Resource, ResourceTemplate } from '../../core/protocol/types.ts';
import type { Catalogue, Slice } from '../../core/registry/catalogue.ts';

/** The children of each directory by their addresses: `file` or `directory`. */
type Tree = ReadonlyMap<string, ReadonlyMap<string, 'file' | 'directory'>>;

export class SkillDirectories {
  readonly #skills: Catalogue<SkillEntry>;
  readonly #resources: Catalogue<Resource | ResourceTemplate>;
  #version = -1;
  #everything: Tree = new Map();
  #ofView = new WeakMap<ListView, Tree>();

  constructor(skills: Catalogue<SkillEntry>, resources: Catalogue<Resource | ResourceTemplate>) {
    this.#skills = skills;
    this.#resources = resources;
  }

  /**
   * One page of a directory. Its cursor names the last child of the page before, so it stays valid while files come and go.
   *
   * @param view the resources that the caller does not see are left out, and directories without any other
   * @throws {ProtocolError} -32602 if the address is no directory, or the cursor is unknown
   */
  slice(uri: string, cursor: string | undefined, size: number, view: ListView | undefined): Slice<Resource> {
    const children = this.#tree(view).get(uri);
    if (!children)
      throw new ProtocolError(
        ErrorCode.InvalidParams,
        'params.uri: expected a directory of a skill, without a slash at its end, such as "skill://name/references"',
      );
    const after = cursor === undefined ? '' : readCursor(cursor, uri);
    const left = [...children].filter(([child]) => child > after).sort(([one], [other]) => (one < other ? -1 : 1));
    const items = left.slice(0, size).map(([child, kind]) => this.#describe(child, kind));
    const last = items.at(-1);
    return { items, nextCursor: last && left.length > size ? cursorAfter(last.uri) : undefined };
  }

  #describe(uri: string, kind: 'file' | 'directory'): Resource {
    const definition = kind === 'file' ? this.#resources.get(uri)?.definition : undefined;
    if (definition && 'uri' in definition) return definition;
    return { uri, name: nameIn(uri), ...(kind === 'directory' ? { mimeType: DIRECTORY_TYPE } : {}) };
  }

  #tree(view: ListView | undefined): Tree {
    if (this.#version !== this.#skills.version) {
      this.#version = this.#skills.version;
      this.#everything = treeOf(this.#skills, undefined);
      this.#ofView = new WeakMap();
    }
    if (!view || view.hides.size === 0) return this.#everything;
    const known = this.#ofView.get(view) ?? treeOf(this.#skills, view);
    this.#ofView.set(view, known);
    return known;
  }
}

function treeOf(skills: Catalogue<SkillEntry>, view: ListView | undefined): Tree {
  const tree = new Map<string, Map<string, 'file' | 'directory'>>();
  for (const { definition, enabled } of skills.all()) {
    if (!enabled || definition.resources === 'dynamic') continue;
    for (const { uri } of definition.resources) {
      let child = uri;
      let kind: 'file' | 'directory' = 'file';
      if (view?.hides.has(uri)) continue;
      for (let parent = parentOf(child); parent !== undefined; parent = parentOf(child)) {
        const children = tree.get(parent) ?? new Map<string, 'file' | 'directory'>();
        tree.set(parent, children);
        if (children.has(child)) break;
        children.set(child, kind);
        child = parent;
        kind = 'directory';
      }
    }
  }
  return tree;
}

/** @returns undefined for the first segment of an address, which has no parent */
function parentOf(uri: string): string | undefined {
  const slash = uri.lastIndexOf('/');
  return slash <= uri.indexOf('://') + 2 ? undefined : uri.slice(0, slash);
}

function nameIn(uri: string): string {
  return decodeURIComponent(uri.slice(uri.lastIndexOf('/') + 1));
}

/** The last child of a page. It is no secret: the page has it. */
function cursorAfter(uri: string): string {
  return Buffer.from(uri).toString('base64url');
}

function readCursor(cursor: string, uri: string): string {
  const child = Buffer.from(cursor, 'base64url').toString();
  if (child.startsWith(`${uri}/`) && cursorAfter(child) === cursor) return child;
  throw new ProtocolError(ErrorCode.InvalidParams, 'params.cursor: unknown cursor. Start again without one.');
}
