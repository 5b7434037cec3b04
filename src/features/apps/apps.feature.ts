/** Apps: pages that hosts show beside the results of tools, and the watch by which pages learn of changes. */
import { VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import type { Feature } from '../../core/server/feature.ts';
import { type AppRegistration, appRegistration } from './app-registration.ts';
import { checkOpenedPages, OpenedPages } from './opened-pages.ts';
import { ResourceReads } from './resource-reads.ts';
import { ToolPages } from './tool-pages.ts';
import { ViewKeys } from './view-keys.ts';
import { watchTool } from './watch-tool.ts';
import { Watches } from './watches.ts';

export interface Apps {
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
    const keys = new ViewKeys(sealing, () => clock.date());
    const reads = new ResourceReads(catalogues.resources, elements.reading);
    const watches = new Watches({ clock, subscriptions: changes, quota: quotas.watches });
    let watched = false;
    const usesViews = (): void => capabilities.extend(VIEWS_EXTENSION);
    elements.resourceReaders.push(reads);
    elements.offeredTool.push((_, { listed }) => {
      if (listed === 'views') usesViews();
    });
    elements.offeredResource.push((_, { listed }) => {
      if (listed !== 'views') return;
      usesViews();
      if (watched) return;
      watched = true;
      elements.tools().register(watchTool({ clock, reads, watches, keys }));
    });
    const toolPages = new ToolPages({ server, catalogue: catalogues.tools, resources: elements.resources() });
    const pages = new OpenedPages({ uriOf: (tool) => toolPages.uriOf(tool) });
    elements.shownTool = pages.shown;
    elements.toolsChanged.push(() => toolPages.sync());
    elements.checksTool.push(({ app, name }) => {
      if (app === true) toolPages.use(name);
    });
    const registration = appRegistration({
      ...{ server, pages, resources: elements.resources() },
      tools: elements.toolRegistry,
      catalogue: catalogues.tools,
    });
    return {
      service: { registration, keys },
      check: () => checkOpenedPages(catalogues.tools.all(), pages),
      drain: () => watches.close(),
    };
  },
};
