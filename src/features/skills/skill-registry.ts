/**
 * The skills of a server: the entries of all sources in one registry, which answers `skills/list`, `skills/get` and
 * `resources/directory/read`, and their files in the registry of resources. No part makes a path of what a client sends.
 */
import type { ActorSystem } from '../../core/kernel/actor.ts';
import type { ElementAccess } from '../../core/messages/authorization-rule.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { Listed } from '../../core/messages/registry-messages.ts';
import type { RequestTarget } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Page } from '../../core/messages/results.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type { CacheHints, Resource, ResourceTemplate } from '../../core/protocol/types.ts';
import { Catalogue } from '../../core/registry/catalogue.ts';
import type { ResourceDefinition } from '../../core/registry/define.ts';
import { elements, type Registration } from '../../core/registry/registration.ts';
import { spawnRegistry } from '../../core/registry/registry.actor.ts';
import { pages, sendPage } from '../../core/registry/resolve.ts';
import { misrouted, respond } from '../../core/requests/active-request.ts';
import { SkillDirectories } from './skill-directories.ts';
import type { ServedSkill, SkillSource } from './skill-source.ts';

/** A file of a skill as a resource. Only SKILL.md is in the list of resources: hosts find the others in the skill's entry. */
export type SkillResource = ResourceDefinition & Pick<ElementAccess, 'machine'> & { readonly listed?: Listed };

export interface SkillRegistryParts {
  readonly system: ActorSystem;
  /** A registration of resources for the files of skills alone. */
  readonly resources: Pick<Registration<SkillResource>, 'replaceSource'>;
  readonly resourceCatalogue: Catalogue<Resource | ResourceTemplate>;
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  /** Maximum number of elements of a page. */
  readonly pageSize: number;
  /** Milliseconds for which clients may cache lists. */
  readonly listTtlMs: number;
}

/** Maximum number of skills of a page: each may have 512 files. */
const MAX_SKILLS = 32;

export class SkillRegistry implements RequestTarget {
  readonly #parts: SkillRegistryParts;
  readonly #catalogue = new Catalogue<SkillEntry>('skill');
  readonly #registration: Pick<Registration<SkillEntry>, 'replaceSource'>;
  readonly #registry: RequestTarget;
  readonly #sources = new Map<string, SkillSource>();
  /** The skills about whose names the log has a warning. */
  readonly #sameNames = new Set<string>();
  /** The digests of the files of each source, as clients were last notified. */
  readonly #digests = new Map<string, ReadonlyMap<string, string>>();

  constructor(parts: SkillRegistryParts) {
    this.#parts = parts;
    const { system } = parts;
    const registry = spawnRegistry({
      system,
      address: 'registry/skills',
      catalogue: this.#catalogue,
      serve: this.#serving(),
      // A client learns of a new skill by the list of resources, which has its SKILL.md.
      changed: () => {},
    }).mailbox;
    this.#registry = registry;
    let refs = 0;
    this.#registration = elements<SkillEntry, SkillEntry, undefined>({
      registry,
      executors: [],
      catalogue: this.#catalogue,
      compile: (entry) => ({ key: entry.uri, definition: entry, implementation: undefined }),
      nextRef: () => ++refs,
      offered: () => {},
      guarded: () => {},
    });
  }

  send(mail: Parameters<RequestTarget['send']>[0]): void {
    this.#registry.send(mail);
  }

  /** Offers the skills of a source, and follows its changes. A source of the same name is replaced. */
  offer(source: SkillSource): void {
    this.#sources.get(source.name)?.close();
    this.#sources.set(source.name, source);
    source.onChange(() => this.#show(source));
    this.#show(source);
  }

  withdraw(source: SkillSource): void {
    source.close();
    if (this.#sources.get(source.name) !== source) return;
    this.#sources.delete(source.name);
    this.#replace(source, []);
  }

  close(): void {
    for (const source of this.#sources.values()) source.close();
  }

  /** The catalogue changes whole: no request sees a part of a change. */
  #show(source: SkillSource): void {
    if (this.#sources.get(source.name) !== source) return;
    const offered = source.skills.filter((skill) => this.#isFree(skill, source));
    this.#replace(source, offered);
  }

  #replace(source: SkillSource, skills: readonly ServedSkill[]): void {
    const { log } = this.#parts.system;
    try {
      this.#parts.resources.replaceSource(source.name, resourcesOf(source, skills));
      this.#registration.replaceSource(
        source.name,
        skills.map(({ entry }) => entry),
      );
    } catch (error) {
      return log('error', `${source.name}: the skills are not served: ${messageOf(error)}`, { event: 'program' });
    }
    this.#warnOfNames();
    const before = this.#digests.get(source.name);
    const now = new Map(skills.flatMap(({ files }) => files.map(({ uri, digest }) => [uri, digest] as const)));
    this.#digests.set(source.name, now);
    for (const [uri, digest] of before ?? [])
      if ((now.get(uri) ?? digest) !== digest) this.#parts.subscriptions.send({ type: 'resource updated', uri });
  }

  /** Names should be unique in a listing (SEP-2640, "Names"): a host shows them to its user. */
  #warnOfNames(): void {
    const first = new Map<string, string>();
    for (const { key, definition } of this.#catalogue.all()) {
      const { name } = definition.frontmatter;
      const other = first.get(name);
      if (other === undefined) first.set(name, key);
      else if (!this.#sameNames.has(key)) {
        this.#sameNames.add(key);
        const both = `${other} and ${key} have the same name`;
        this.#parts.system.log('warning', `${both}. Hosts show it to their users: rename one`, { event: 'program' });
      }
    }
  }

  /** A skill whose address another source has is left out: hosts would take one for the other. */
  #isFree({ entry, files }: ServedSkill, source: SkillSource): boolean {
    const { resourceCatalogue, system } = this.#parts;
    for (const { uri } of files) {
      const taken = resourceCatalogue.get(uri);
      if (!taken || taken.source === source.name) continue;
      const why = `${source.name}: ${entry.uri} is left out: ${uri} is already registered (by ${taken.source})`;
      system.log('warning', `${why}. Use another prefix`, { event: 'program' });
      return false;
    }
    return true;
  }

  #serving(): (request: RequestView) => void {
    const catalogue = this.#catalogue;
    const { resourceCatalogue } = this.#parts;
    const size = Math.min(this.#parts.pageSize, MAX_SKILLS);
    const directories = new SkillDirectories(catalogue, resourceCatalogue);
    const list = pages(catalogue, (cursor, view): Page => {
      const { items, nextCursor } = catalogue.slice(cursor, size, isSkill, view);
      return { of: 'skills', items, nextCursor, ...this.#hintsOf(items, view !== undefined) };
    });
    return (request) => {
      const { operation } = request;
      switch (operation.method) {
        case 'skills/list':
          return sendPage(request, list(operation.cursor, request));
        case 'skills/get': {
          const skill = request.hidden ? undefined : catalogue.get(operation.uri)?.definition;
          if (!skill) throw new ProtocolError(ErrorCode.InvalidParams, `Unknown skill: ${operation.uri.slice(0, 128)}`);
          const { ttlMs, scope } = this.#hintsOf([skill], request.guarded);
          const hints: CacheHints = { ttlMs: ttlMs ?? this.#parts.listTtlMs, cacheScope: scope ?? 'public' };
          return respond(request, { ok: true, result: { kind: 'skill', skill, hints } });
        }
        case 'resources/directory/read': {
          const { view } = request;
          const page = directories.slice(operation.uri, operation.cursor, this.#parts.pageSize, view);
          const entries = catalogue
            .all()
            .flatMap(({ definition }) => (isBelow(definition, operation.uri) ? [definition] : []));
          return sendPage(request, { of: 'resources', ...page, ...this.#hintsOf(entries, view !== undefined) });
        }
        default:
          throw misrouted(request, 'the skills registry');
      }
    };
  }

  /** The caching hints of a result with these skills: the shortest time of their sources, and private if one of them is. */
  #hintsOf(entries: readonly SkillEntry[], personal: boolean): { readonly scope?: 'private'; readonly ttlMs?: number } {
    const options = [...new Set(entries.map(({ uri }) => this.#catalogue.get(uri)?.source))].flatMap(
      (name) => this.#sources.get(name ?? '')?.options ?? [],
    );
    const { listTtlMs } = this.#parts;
    const some = options.some(({ ttlMs }) => ttlMs !== undefined);
    return {
      ...(personal || options.some(({ cacheScope }) => cacheScope === 'private') ? { scope: 'private' } : {}),
      ...(some ? { ttlMs: Math.min(...options.map(({ ttlMs }) => ttlMs ?? listTtlMs)) } : {}),
    };
  }
}

const isSkill = (_: SkillEntry): _ is SkillEntry => true;

/** True if a skill is in a directory, or the directory in the skill. */
function isBelow({ uri }: SkillEntry, directory: string): boolean {
  const root = uri.slice(0, uri.lastIndexOf('/'));
  return `${root}/`.startsWith(`${directory}/`) || directory.startsWith(`${root}/`);
}

/** Each file once: a skill in a folder of another shares its files with it. */
function resourcesOf(source: SkillSource, skills: readonly ServedSkill[]): readonly SkillResource[] {
  const { ttlMs, cacheScope, scopes, allow, machine } = source.options;
  const entries = new Map(skills.map(({ entry }) => [entry.uri, entry]));
  const resources = new Map<string, SkillResource>();
  for (const { files } of skills)
    for (const { uri, name, mimeType, size } of files) {
      const entry = entries.get(uri);
      const shown: Partial<SkillResource> = entry
        ? { name: entry.frontmatter.name, description: entry.frontmatter.description }
        : { name, size, listed: 'none' };
      resources.set(uri, {
        ...{ uri, name, mimeType, ttlMs, cacheScope, scopes, allow, machine },
        ...shown,
        handler: () => source.read(uri),
      });
    }
  return [...resources.values()];
}
