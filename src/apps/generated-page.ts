/** The pages that the build has made. The server completes them with a definition, which is the same for every user. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-files.ts';
import type { ResourceDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import { pageOf, type ServedPage } from './app-page.ts';
import type { ViewDefinition } from './view-definition.ts';

/** The placeholder of the definition in a page (apps/build.ts). */
const PLACE = '"TROUPE-VIEW"';

const templates = new Map<ViewDefinition['kind'], string>();

export interface GeneratedPage<D extends ViewDefinition> {
  /** The name in the address of the page. */
  readonly name: string;
  /** The owner of the page in messages, such as `machine "order"`. */
  readonly label: string;
  /** The definition without the parts that take long to make. The address of the page follows from it. */
  readonly definition: D;
  /** Adds the rest when a client first reads the page. */
  complete?(definition: D): Promise<D>;
  readonly shown: Pick<ResourceDefinition, 'title' | 'icons'>;
  /** The tool that opens the page: who may use it may read the page. */
  readonly opener: string;
}

/** @throws {DefinitionError} if the package has no page of this kind */
export function generatedPage<D extends ViewDefinition>(server: string, page: GeneratedPage<D>): ServedPage {
  const { name, label, definition, shown, opener } = page;
  const template = templateOf(definition.kind, label);
  let text: Promise<string> | undefined;
  return pageOf(server, {
    name,
    identity: template + dataOf(definition),
    // One text for all of its readers.
    text: () => (text ??= completed(template, page)),
    ui: { prefersBorder: true },
    shown,
    opener,
  });
}

async function completed<D extends ViewDefinition>(template: string, page: GeneratedPage<D>): Promise<string> {
  const { complete, definition } = page;
  const data = dataOf(complete ? await complete(definition) : definition);
  // A function, because a definition may contain `$&`.
  return template.replace(PLACE, () => data);
}

/** The definition as the data block of a page: no text in it ends the block. */
function dataOf(definition: ViewDefinition): string {
  return JSON.stringify(definition).replaceAll('<', '\\u003c');
}

/** @throws {DefinitionError} if the package has no page of this kind */
export function templateOf(kind: ViewDefinition['kind'], label: string): string {
  const known = templates.get(kind);
  if (known !== undefined) return known;
  const file = packageFile(`dist/apps/${kind}.html`);
  let template: string;
  try {
    template = readFileSync(file, 'utf8');
  } catch {
    throw new DefinitionError(`${label}: app: ${file.pathname} is missing. Build the package: npm run build`);
  }
  templates.set(kind, template);
  return template;
}
