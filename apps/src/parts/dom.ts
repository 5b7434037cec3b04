/** Makes elements. Data becomes text nodes and attributes that run nothing: no text becomes markup. */

import type { ViewWords } from '../../../src/features/apps/view-texts.ts';
import { word } from './words.ts';

export type Child = Node | string | undefined | false;

/** The listeners of a page are for clicks and keys, which happen to elements. */
type PageEvent = KeyboardEvent & { readonly target: Element };

/** Attributes by name; `on…` members are listeners. An absent or false one is left out, and true is the empty text. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined | ((event: PageEvent) => void)>>;

/** A part of the page, which shows a value. */
export interface Part<Value> {
  readonly element: HTMLElement;
  show(value: Value): void;
}

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (typeof value === 'function') made.addEventListener(name.slice(2), value as (event: Event) => void);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? '' : String(value));
  fill(made, ...children);
  return made;
}

/** Replaces the children of an element. */
export function fill(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren(...children.map((child) => child || ''));
}

/** A note in a quieter colour. */
export function quiet(text: string | undefined): HTMLElement | undefined {
  return text === undefined ? undefined : element('p', { class: 'quiet' }, text);
}

export function button(text: string, onclick: () => void, kind?: string): HTMLButtonElement {
  return element('button', { type: 'button', class: kind, onclick }, text);
}

/** A part of the page with a name for readers of the screen. It is hidden until it has content. */
export function section(name: keyof ViewWords): HTMLElement {
  return element('section', { class: name, 'aria-label': word(name), hidden: true });
}
