/** The catalogue of the server, as the page knows it: read when the view is opened, and again while it is shown. */
import { signal } from '@preact/signals';
import type { CatalogueElement, CatalogueFrame, Plain, ServerCatalogue } from '../../../src/inspector/frames.ts';
import { isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { ask, Refused } from '../store/api.ts';
import { poll } from '../store/poll.ts';
import { changed, connection, model } from '../store/state.ts';

/** Kinds of things that a server offers, in the order of the list. */
export type OfferKind = 'tool' | 'resource' | 'template' | 'prompt' | 'machine';

/** The subject of the right side of the view. */
export type Shown =
  | { readonly kind: 'server' | 'calls' | 'apps' }
  | { readonly kind: OfferKind; readonly name: string };

export const shown = signal<Shown>({ kind: 'server' });
/** The reason why the catalogue could not be read. */
export const trouble = signal<string | undefined>(undefined);

/** Milliseconds between two questions for changes. The server answers "no change" with an empty response. */
const AGAIN_MS = 3_000;

/** Reads the catalogue now and while the view is open. @returns a function that ends it */
export const watchOffers = poll(readOffers, AGAIN_MS).begin;

async function readOffers(): Promise<void> {
  if (connection.value.state !== 'live') return;
  const { value: data } = model;
  try {
    const response = await ask(`api/catalogue?version=${data.catalogue?.version ?? ''}`);
    trouble.value = undefined;
    if (response.status === 204) return;
    const frame: CatalogueFrame = await response.json();
    // A recording may have been opened in the meantime.
    if (connection.value.state !== 'live') return;
    data.take(frame);
    changed();
  } catch (error) {
    trouble.value = error instanceof Refused ? error.message : 'The server cannot be reached.';
  }
}

/** The elements of one kind. */
export function elementsOf(catalogue: ServerCatalogue, kind: Exclude<OfferKind, 'machine'>) {
  switch (kind) {
    case 'tool':
      return catalogue.tools;
    case 'resource':
      return catalogue.resources;
    case 'template':
      return catalogue.templates;
    case 'prompt':
      return catalogue.prompts;
  }
}

/** The display name: the title, or the name of a resource, which is listed by its URI. */
export function titleOf({ name, definition }: CatalogueElement): string {
  return textOfValue(member(definition, 'title')) ?? textOfValue(member(definition, 'name')) ?? name;
}

export function descriptionOf({ definition }: { readonly definition: Plain }): string | undefined {
  return textOfValue(member(definition, 'description'));
}

/** The name in the list: short, and unique among its kind. */
export function listName(kind: OfferKind, { name, definition }: CatalogueElement): string {
  if (kind === 'tool' || kind === 'prompt') return name;
  return textOfValue(member(definition, 'name')) ?? name;
}

/** The members of an object that are objects or lists, in their order; empty for other values. */
export function membersOf(value: Plain | undefined): readonly (readonly [string, Plain])[] {
  return isRecord(value) ? Object.entries(value) : [];
}
