/** The pages that the build has made. The server completes them with a definition, which is the same for every user. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../core/kernel/package-files.ts';
import type { ResourceDefinition } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { pageOf, type ServedPage } from './app-page.ts';
import type { ViewDefinition } from './view-definition.ts';

/** The placeholders of the definition in a page, and of its picture (apps/build.ts). */
const PLACE = '"TROUPE-VIEW"';
const PICTURE_PLACE = '<!--TROUPE-CHART-->';

const templates = new Map<ViewDefinition['kind'], string>();

interface GeneratedPage<D extends ViewDefinition> {
  /** The name in the address of the page. */
  readonly name: string;
  /** The owner of the page in messages, such as `machine "order"`. */
  readonly label: string;
  /** The address of the page follows from it. */
  readonly definition: D;
  /** Draws the picture of the page, as markup, when a client first reads the page. */
  picture?(): Promise<string | undefined>;
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
  // Trusted Types let the script of the page parse no markup, so the picture is in the page.
  const picture = (await page.picture?.()) ?? '';
  // Functions, because both may contain `$&`. The picture goes first: a definition may contain its placeholder.
  return template.replace(PICTURE_PLACE, () => picture).replace(PLACE, () => dataOf(page.definition));
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
