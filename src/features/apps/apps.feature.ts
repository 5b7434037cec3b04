/** Apps: pages that hosts show beside the results of tools, and the watch by which pages learn of changes. */
import type { ResourceImplementation } from '../../core/execution/execution.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import { VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import type { Feature } from '../../core/server/feature.ts';
import { type AppRegistration, appRegistration } from './app-registration.ts';
import { checkOpenedPages, OpenedPages } from './opened-pages.ts';
import { ResourceReads } from './resource-reads.ts';
import { ToolPages } from './tool-pages.ts';
import { ViewKeys } from './view-keys.ts';
import { watchTool } from './watch-tool.ts';
import { Watches } from './watches.ts';

interface Apps {
  readonly registration: AppRegistration;
  /** The keys of the pages of instances. */
  readonly keys: ViewKeys;
}

export const apps: Feature<Apps> = {
  name: 'apps',
  open({ options, system, keys: sealing, quotas, changes, capabilities, elements }) {
    const { clock } = system;
    const server = options.name;
    const { catalogues } = elements;
    const keys = new Lazy(() => new ViewKeys(sealing, () => clock.date()));
    /** By their references. */
    const implementations = new Map<number, ResourceImplementation>();
    const reads = new Lazy(() => new ResourceReads(catalogues.resources, implementations, elements.reading));
    const watches = new Lazy(() => new Watches({ clock, subscriptions: changes, quota: quotas.watches }));
    let watched = false;
    const usesViews = (): void => capabilities.extend(VIEWS_EXTENSION);
    elements.resourceReaders.push({
      send(mail) {
        if (mail.type === 'attach') implementations.set(mail.ref, mail.implementation);
        else implementations.delete(mail.ref);
      },
    });
    elements.offeredTool.push((_, { listed }) => {
      if (listed === 'views') usesViews();
    });
    elements.offeredResource.push((_, { listed }) => {
      if (listed !== 'views') return;
      usesViews();
      if (watched) return;
      watched = true;
      elements.tools().register(watchTool({ clock, reads: reads.value, watches: watches.value, keys: keys.value }));
    });
    const toolPages = new Lazy(
      () => new ToolPages({ server, catalogue: catalogues.tools, resources: elements.resources() }),
    );
    const pages = new Lazy(() => new OpenedPages({ uriOf: (tool) => toolPages.created?.uriOf(tool) }));
    elements.shownTool = (tool, element) => (pages.created || element.opens ? pages.value.shown(tool, element) : tool);
    elements.toolsChanged.push(() => toolPages.created?.sync());
    elements.checksTool.push(({ app, name }) => {
      if (app === true) toolPages.value.use(name);
    });
    const registration = new Lazy(() =>
      appRegistration({
        ...{ server, pages: pages.value, resources: elements.resources() },
        tools: elements.toolRegistry,
        catalogue: catalogues.tools,
      }),
    );
    return {
      service: {
        get registration() {
          return registration.value;
        },
        get keys() {
          return keys.value;
        },
      },
      check() {
        const tools = catalogues.tools.all();
        if (tools.some(({ opens }) => opens)) checkOpenedPages(tools, pages.value);
      },
      drain: () => watches.created?.close(),
    };
  },
};
