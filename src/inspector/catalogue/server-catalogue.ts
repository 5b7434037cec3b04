/**
 * Describes everything that a server offers, as plain data: the definitions in its registries, its machines, its
 * capabilities and its limits. Reads them directly; sends no request.
 */
import { isObject } from '../../core/protocol/json.ts';
import { SUPPORTED_REVISIONS } from '../../core/protocol/revisions.ts';
import type { AnyRoles } from '../../features/machines/key-options.ts';
import { sourceOfMachine } from '../../features/machines/machine-registration.ts';
import type { Server } from '../../features/server/server.ts';
import type {
  CatalogueElement,
  CatalogueFrame,
  CatalogueMachine,
  MachineRole,
  Plain,
  ServerCatalogue,
} from '../frames.ts';
import { jsonTextOf } from '../inspector-json.ts';
import { type Bounds, plainOf, type SecretFinder } from '../redaction/plain-data.ts';

/** Bounds of one definition. A longer schema is cut. */
const ELEMENT: Bounds = { depth: 32, members: 1_000, text: 16_000, all: 64_000 };
/** Maximum number of characters of all definitions. Above it, an element has only its name, its title and its description. */
const MAX_CHARACTERS = 4_000_000;
/** Longest description of an element whose definition is left out. */
const MAX_BRIEF = 300;
/** Maximum number of elements of one kind. */
const MAX_ELEMENTS = 5_000;
/** The keywords of a JSON Schema whose values are data, not schemas. */
const VALUES: ReadonlySet<string> = new Set(['default', 'examples', 'example', 'const', 'enum']);

/** The marks of omitted parts (`redaction/plain-data.ts`). */
const CUT = /«(?:…|more|\d+ more|(?!redacted)[\w ]+)»|… \(\d+ characters\)/;

/** The elements of one kind. `all` returns a {@link CatalogueEntry} for each. */
export interface ElementSource {
  readonly catalogue: { readonly version: number; all(): readonly unknown[] };
}

/** An element, and the arguments that its server completes. */
export interface CompletedElement {
  readonly uri?: string;
  readonly name?: string | undefined;
  readonly complete?: object | undefined;
}

/** The parts of a server that describe what it offers. */
export interface CatalogueSource {
  readonly tools: ElementSource;
  readonly resources: ElementSource & { definitions(): readonly CompletedElement[] };
  readonly prompts: ElementSource & { definitions(): readonly CompletedElement[] };
  readonly machines: Pick<Server['machines'], 'definitions'>;
}

interface CatalogueOptions {
  readonly server: CatalogueSource;
  /** The revisions of its connections, newest first. Default: all that Troupe supports. */
  readonly revisions?: readonly string[];
  /** The server as it introduces itself to clients. */
  introduction(): {
    readonly info: object;
    readonly capabilities: object;
    readonly instructions: string | undefined;
  };
  readonly limits: object;
  readonly redactor: SecretFinder;
}

/** The registered element of one kind, as its registry holds it. */
export interface CatalogueEntry {
  readonly key: string;
  readonly definition: unknown;
  readonly source: string;
  readonly enabled: boolean;
}

export class CatalogueReader {
  readonly #options: CatalogueOptions;
  readonly #finder: SecretFinder;
  #last: { readonly version: number; readonly text: string } | undefined;

  constructor(options: CatalogueOptions) {
    this.#options = options;
    this.#finder = inDefinitions(options.redactor);
  }

  /** Increases with each change of a registry. */
  get version(): number {
    const { tools, resources, prompts } = this.#options.server;
    return tools.catalogue.version + resources.catalogue.version + prompts.catalogue.version;
  }

  /** The frame with the catalogue, as JSON. It is made again only after a change. */
  text(): string {
    const { version } = this;
    if (this.#last?.version !== version) {
      const frame: CatalogueFrame = { type: 'catalogue', catalogue: this.#read(version) };
      this.#last = { version, text: jsonTextOf({ ...frame }) };
    }
    return this.#last.text;
  }

  #read(version: number): ServerCatalogue {
    const { server, introduction, limits, redactor, revisions = SUPPORTED_REVISIONS } = this.#options;
    const { info, capabilities, instructions } = introduction();
    const budget = { left: MAX_CHARACTERS };
    const machines = server.machines.definitions();
    const owners = new Map(machines.map(({ name }) => [sourceOfMachine(name), name]));
    const completed = completers([...server.resources.definitions(), ...server.prompts.definitions()]);
    const read = (entries: readonly unknown[]): CatalogueElement[] =>
      entries
        .filter(isEntry)
        .slice(0, MAX_ELEMENTS)
        .map((entry) => this.#element(entry, owners, completed, budget));
    const resources = server.resources.catalogue.all();
    const isTemplate = (entry: unknown): boolean =>
      isEntry(entry) && isObject(entry.definition) && 'uriTemplate' in entry.definition;
    return {
      version,
      server: this.#plain(info),
      ...(instructions === undefined ? {} : { instructions: redactor.text(instructions).slice(0, ELEMENT.text) }),
      capabilities: this.#plain(capabilities),
      revisions,
      limits: this.#plain(limits),
      tools: read(server.tools.catalogue.all()),
      resources: read(resources.filter((entry) => !isTemplate(entry))),
      templates: read(resources.filter(isTemplate)),
      prompts: read(server.prompts.catalogue.all()),
      machines: machines.slice(0, MAX_ELEMENTS).map((machine): CatalogueMachine => {
        const { name, title, description, events, ttlMs, idleMs, key, roles, version: revision } = machine;
        return {
          name,
          ...(title === undefined ? {} : { title }),
          ...(description === undefined ? {} : { description: redactor.text(description).slice(0, ELEMENT.text) }),
          ...(revision === undefined ? {} : { version: revision }),
          ...(ttlMs === undefined ? {} : { ttlMs }),
          ...(idleMs === undefined ? {} : { idleMs }),
          events: Object.keys(events),
          ...(key === undefined ? {} : { key: typeof key === 'string' ? key : `argument ${key.argument}` }),
          ...(roles === undefined ? {} : { roles: rolesOf(roles) }),
        };
      }),
    };
  }

  #element(
    { key, definition, source, enabled }: CatalogueEntry,
    owners: ReadonlyMap<string, string>,
    completed: ReadonlyMap<string, readonly string[]>,
    budget: { left: number },
  ): CatalogueElement {
    const machine = owners.get(source);
    const completes = completed.get(key);
    const about = {
      name: key.slice(0, ELEMENT.text),
      source,
      ...(enabled ? {} : { enabled }),
      ...(machine === undefined ? {} : { machine }),
      ...(completes === undefined ? {} : { completes }),
    };
    if (budget.left > 0) {
      const plain = this.#plain(definition);
      const text = jsonTextOf(plain);
      budget.left -= text.length;
      return { ...about, definition: plain, ...(CUT.test(text) ? { cut: true } : {}) };
    }
    const { title, description, uri, uriTemplate } = isObject(definition) ? definition : {};
    const brief = typeof description === 'string' ? description.slice(0, MAX_BRIEF) : undefined;
    return { ...about, definition: this.#plain({ uri, uriTemplate, title, description: brief }), cut: true };
  }

  #plain(value: unknown): Plain {
    // Definitions are JSON: clients receive them as they are.
    return plainOf(value, this.#finder, { bounds: ELEMENT, parsed: true });
  }
}

/** The roles of a machine without `of`, which chooses one for each caller. */
function rolesOf(roles: AnyRoles): readonly MachineRole[] {
  return Object.entries(roles).flatMap(([name, role]) =>
    typeof role === 'function'
      ? []
      : [{ name, events: role.events === '*' ? ['*'] : role.events, ownView: role.view !== undefined }],
  );
}

/** The arguments that each resource template and prompt completes, by its key. */
function completers(definitions: readonly CompletedElement[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const { uri, name, complete } of definitions) {
    const key = uri ?? name;
    if (key !== undefined && complete) found.set(key, Object.keys(complete));
  }
  return found;
}

/**
 * In a definition, `password` is the name of a parameter, and its value is a schema. Only the values in a schema are
 * data: the default of a parameter `password` is hidden.
 */
export function inDefinitions(finder: SecretFinder): SecretFinder {
  return {
    name(name, within) {
      const { shown } = finder.name(name, []);
      return { shown, hidden: VALUES.has(name) && within.some((outer) => finder.name(outer, []).hidden) };
    },
    text: (text) => finder.text(text),
  };
}

function isEntry(value: unknown): value is CatalogueEntry {
  return isObject(value) && typeof value.key === 'string' && typeof value.source === 'string';
}
