/** The pages of tools with `app: true`: a form of the arguments, and the result. Each is a resource of its own. */

import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import type { Tool } from '../../core/protocol/types.ts';
import type { ReadableCatalogue } from '../../core/registry/catalogue.ts';
import type { Registration } from '../../core/registry/registration.ts';
import { followerOf } from '../asking/form.ts';
import { formFieldsOf } from '../asking/form-model.ts';
import type { PageResource, ServedPage } from './app-page.ts';
import { generatedPage, templateOf } from './generated-page.ts';
import type { ToolPage } from './view-definition.ts';

interface ToolPagesOptions {
  /** The name of the server. */
  readonly server: string;
  readonly catalogue: ReadableCatalogue<Tool>;
  readonly resources: Pick<Registration<PageResource>, 'replaceSource'>;
}

/** Members of results below this depth, and beyond this number, have no titles. */
const MAX_DEPTH = 4;
const MAX_TITLES = 200;

export class ToolPages {
  readonly #options: ToolPagesOptions;
  /** The page of each tool, with the definition that it was made of. */
  readonly #pages = new Map<string, { readonly tool: Tool; readonly page: ServedPage }>();
  #used = false;

  constructor(options: ToolPagesOptions) {
    this.#options = options;
  }

  /** The address of a tool's page; undefined for a tool without one. */
  uriOf(tool: string): string | undefined {
    return this.#pages.get(tool)?.page.uri;
  }

  /**
   * Notes that a tool has a page. A server without such tools pays nothing for them.
   *
   * @throws {DefinitionError} if the package has no page for tools
   */
  use(tool: string): void {
    templateOf('tool', `tool "${tool}"`);
    this.#used = true;
  }

  /** Follows the catalogue of tools after a change. */
  sync(): void {
    if (!this.#used) return;
    const { catalogue, resources, server } = this.#options;
    const shown = new Map<string, Tool>();
    for (const { key, definition, enabled, opens } of catalogue.all())
      if (enabled && opens === true) shown.set(key, definition);
    for (const key of [...this.#pages.keys()])
      if (!shown.has(key)) {
        this.#pages.delete(key);
        resources.replaceSource(sourceOf(key), []);
      }
    for (const [key, tool] of shown) {
      if (this.#pages.get(key)?.tool === tool) continue;
      const page = toolPage(server, tool);
      resources.replaceSource(sourceOf(key), page.resources);
      this.#pages.set(key, { tool, page });
    }
  }
}

function sourceOf(tool: string): string {
  return `the page of tool "${tool}"`;
}

function toolPage(server: string, tool: Tool): ServedPage {
  const { name, title = name, description, icons, inputSchema, outputSchema } = tool;
  const definition: ToolPage = {
    kind: 'tool',
    server,
    title,
    tool: name,
    ...(description === undefined ? {} : { description }),
    fields: formFieldsOf(inputSchema, followerOf(inputSchema, `tool "${name}": input`)),
    output: outputSchema ? titlesOf(outputSchema, `tool "${name}": output`) : {},
  };
  return generatedPage(server, {
    // A folder of their own: a tool may have the name of a machine.
    name: `tools/${name.replaceAll('.', '~')}`,
    label: `tool "${name}"`,
    definition,
    shown: { title, ...(icons ? { icons } : {}) },
    opener: name,
  });
}

/** The titles of the members of a result at any depth, by their names. The first of several with one name counts. */
function titlesOf(schema: JsonObject, where: string): Readonly<Record<string, string>> {
  const titles = new Map<string, string>();
  // The guard of arguments demands an object, and a result may be any value.
  const follow = followerOf({ type: 'object', properties: { result: schema } }, where);
  const visit = (at: unknown, depth: number): void => {
    const found = follow(at);
    if (!found || depth > MAX_DEPTH) return;
    if (found.items !== undefined) visit(found.items, depth + 1);
    for (const [name, part] of Object.entries(isJsonObject(found.properties) ? found.properties : {})) {
      const title = follow(part)?.title;
      if (typeof title === 'string' && titles.size < MAX_TITLES && !titles.has(name)) titles.set(name, title);
      visit(part, depth + 1);
    }
  };
  visit(schema, 0);
  return Object.fromEntries(titles);
}
