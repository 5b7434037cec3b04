/** The pages that tools open, by tool and by app. */
import type { Element } from '../../core/messages/registry-messages.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { opensPage } from '../../core/protocol/views.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';

export class OpenedPages {
  readonly #ownPages: { uriOf(tool: string): string | undefined };
  /** The addresses of pages, by app. */
  readonly #pages = new Map<string, string>();
  /** The apps that name their tools, by tool. */
  readonly #apps = new Map<string, string>();

  /** @param ownPages the pages of tools with `app: true` */
  constructor(ownPages: { uriOf(tool: string): string | undefined }) {
    this.#ownPages = ownPages;
  }

  /** Sets the page of an app. @param tools the names of tools that open it */
  set(app: string, uri: string, tools: readonly string[]): void {
    this.delete(app);
    this.#pages.set(app, uri);
    for (const tool of tools) this.#apps.set(tool, app);
  }

  delete(app: string): void {
    this.#pages.delete(app);
    for (const [tool, opened] of this.#apps) if (opened === app) this.#apps.delete(tool);
  }

  /** The apps, in the order of their registration. */
  names(): readonly string[] {
    return [...this.#pages.keys()];
  }

  /** The app that a tool opens; undefined if it opens none. */
  appOf({ key, opens }: Pick<Element<Tool>, 'key' | 'opens'>): string | undefined {
    return typeof opens === 'string' ? opens : this.#apps.get(key);
  }

  #pageOf(element: Element<Tool>): string | undefined {
    const app = this.#pages.size === 0 ? undefined : this.appOf(element);
    return app === undefined ? undefined : this.#pages.get(app);
  }

  /** The definition of a tool as clients list it. */
  readonly shown = (tool: Tool, element: Element<Tool>): Tool => {
    const uri = element.opens === true ? this.#ownPages.uriOf(element.key) : this.#pageOf(element);
    return uri === undefined ? tool : { ...tool, _meta: opensPage(tool._meta, uri) };
  };
}

/** @throws {DefinitionError} if a tool opens an app that does not exist */
export function checkOpenedPages(tools: readonly Element<Tool>[], pages: OpenedPages): void {
  const names = pages.names();
  for (const { key, opens } of tools)
    if (typeof opens === 'string' && !names.includes(opens))
      throw new DefinitionError(
        `tool "${key}": app: there is no app "${opens}"; ${names.length === 0 ? 'there is none' : `there are ${names.join(', ')}`}. Register it with server.app("${opens}", { html })`,
      );
}
