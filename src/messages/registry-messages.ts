/** What a registry hears. Registration answers through a reply function, at once; requests are answered through the in-flight table. Types only. */
import type { RequestMail } from './request-messages.ts';

/** What a registry knows of an element: its description and a reference. The executor holds what runs. */
export interface Element<D> {
  /** The name by which requests resolve it: a tool's or prompt's name, a resource's uri, a template's text. */
  readonly key: string;
  readonly definition: D;
  /** Names the implementation to the executor. */
  readonly ref: number;
  /** Who offered it: `code`, or a file or directory. */
  readonly source: string;
  readonly enabled: boolean;
}

/** An element that is being offered. */
export type ElementOffer<D> = Omit<Element<D>, 'enabled'>;

/** How a change of the registry went. `gone` are the references whose implementations are no longer needed. */
export type Registered =
  | { readonly ok: true; readonly gone: readonly number[] }
  | { readonly ok: false; readonly why: string };

export type RegistrationMail<D> =
  | { readonly type: 'register'; readonly offer: ElementOffer<D>; reply(registered: Registered): void }
  /** Replaces the definition and reference of an element, in its place. */
  | { readonly type: 'update'; readonly offer: ElementOffer<D>; reply(registered: Registered): void }
  | { readonly type: 'enable' | 'disable' | 'remove'; readonly key: string; reply(registered: Registered): void }
  /** Replaces everything that one source offers, in one change; an empty list removes it. */
  | {
      readonly type: 'replace source';
      readonly source: string;
      readonly offers: readonly ElementOffer<D>[];
      reply(registered: Registered): void;
    }
  | { readonly type: 'clear'; reply(registered: Registered): void }
  /** What is offered looks the same, but does something else: clients are told to list again. */
  | { readonly type: 'announce'; reply(registered: Registered): void };

export type RegistryMail<D> = RegistrationMail<D> | RequestMail;
