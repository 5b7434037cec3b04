/** Registration of apps. Each app is a page with an address of its own, which the lists of tools name. */
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RegistryMail } from '../../core/messages/registry-messages.ts';
import type { Tool } from '../../core/protocol/types.ts';
import type { ReadableCatalogue } from '../../core/registry/catalogue.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { Registration } from '../../core/registry/registration.ts';
import { type AppDefinition, checkApp } from './app-options.ts';
import { authorsPage, type PageResource } from './app-page.ts';
import type { OpenedPages } from './opened-pages.ts';

/** Registration of apps at run time. Clients get changed lists of the tools that open them. */
export interface AppRegistration {
  /** Registers an app. @throws {DefinitionError} if the definition is invalid, or the name is taken */
  register(definition: AppDefinition): RegisteredApp;
  /** Replaces an app, and reads its page again. @throws as `register`, or if no such app exists */
  update(definition: AppDefinition): void;
  remove(name: string): void;
  /** Replaces all apps of one source. */
  replaceSource(source: string, definitions: readonly AppDefinition[]): void;
  /** The registered definitions as their authors wrote them. */
  definitions(): readonly AppDefinition[];
}

export interface RegisteredApp {
  readonly key: string;
  /** The address of its page, which changes with the text of the page. */
  readonly uri: string;
  remove(): void;
}

interface AppRegistrationOptions {
  /** The name of the server. */
  readonly server: string;
  readonly pages: OpenedPages;
  readonly resources: Pick<Registration<PageResource>, 'replaceSource'>;
  /** The registry of tools. */
  readonly tools: Mailbox<RegistryMail<Tool>>;
  readonly catalogue: ReadableCatalogue<Tool>;
}

interface Offered {
  readonly definition: AppDefinition;
  readonly source: string;
  readonly uri: string;
}

export function appRegistration({
  server,
  pages,
  resources,
  tools,
  catalogue,
}: AppRegistrationOptions): AppRegistration {
  const offered = new Map<string, Offered>();
  /** Announces the tools that open an app: their definitions name another page now. */
  const announce = (name: string): void => {
    if (catalogue.all().some((element) => pages.appOf(element) === name)) tools.send({ type: 'announce' });
  };
  const put = (definition: AppDefinition, source: string): Offered => {
    checkApp(definition);
    const { name, tools: opening = [] } = definition;
    const { uri, resources: served } = authorsPage(server, definition);
    const before = offered.get(name);
    resources.replaceSource(sourceOf(name), served);
    const app = { definition, source, uri };
    offered.set(name, app);
    pages.set(name, uri, opening);
    if (before?.uri !== uri || `${before.definition.tools ?? []}` !== `${opening}`) announce(name);
    return app;
  };
  const remove = (name: string): void => {
    if (!offered.has(name)) throw new DefinitionError(`no app "${name}" is registered`);
    announce(name);
    offered.delete(name);
    pages.delete(name);
    resources.replaceSource(sourceOf(name), []);
  };
  return {
    remove,
    definitions: () => [...offered.values()].map(({ definition }) => definition),
    register(definition) {
      const taken = offered.get(definition.name);
      if (taken) throw new DefinitionError(takenBy(definition.name, taken));
      const { uri } = put(definition, 'code');
      return { key: definition.name, uri, remove: () => remove(definition.name) };
    },
    update(definition) {
      const before = offered.get(definition.name);
      if (!before) throw new DefinitionError(`no app "${definition.name}" is registered`);
      put(definition, before.source);
    },
    replaceSource(source, definitions) {
      const names = new Set(definitions.map(({ name }) => name));
      for (const [name, app] of offered) {
        if (names.has(name) && app.source !== source) throw new DefinitionError(takenBy(name, app));
      }
      for (const [name, app] of offered) if (app.source === source && !names.has(name)) remove(name);
      for (const definition of definitions) put(definition, source);
    },
  };
}

function takenBy(name: string, { source }: Offered): string {
  return `app "${name}" is already registered (by ${source}): choose another name, or update or remove the registered one`;
}

function sourceOf(name: string): string {
  return `app "${name}"`;
}
