/**
 * The mailbox of a registry. Changes are answered in their turn to the mailbox that they name; requests are answered
 * through the in-flight table. Types only.
 */
import type { ElementAccess } from './authorization-rule.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestMail } from './request-messages.ts';

/** An element in a registry: its description and a reference. The executor holds the implementation. */
export interface Element<D> {
  /** The key by which requests resolve it: a tool's or prompt's name, a resource's URI, a template's text. */
  readonly key: string;
  readonly definition: D;
  /** Identifies the implementation in the executor. */
  readonly ref: number;
  /** Its source: `code`, or a file or directory. */
  readonly source: string;
  readonly enabled: boolean;
  /** Decides who may use it; undefined if everyone may. */
  readonly access?: ElementAccess | undefined;
  /** The clients that find it in a list; undefined: all. Calls and reads by its name are served to anyone. */
  readonly listed?: Listed | undefined;
  /** Its annotations are claims of another server: they permit no repeat of a call. */
  readonly untrusted?: true | undefined;
  /** The element comes from a list of another server, which shared caches may keep (`public`), or may not. */
  readonly ofUpstream?: 'public' | 'private' | undefined;
  /** Its source announces it to the callers from which it is not hidden, and it is no change of the list of others. */
  readonly owned?: true | undefined;
  /** The rank of its source, a whole number: lists have the elements of ranked sources last, in this order, each as its source lists them. */
  readonly rank?: number | undefined;
  /** The app that shows the results of a tool; true: a page of its own. */
  readonly opens?: string | true | undefined;
  /** The tool whose rules decide about a page. */
  readonly opener?: string | undefined;
}

/** `views`: clients that show views. `none`: it is in no list. A list of names: nor is it, and the tools of these features find it. */
export type Listed = 'views' | 'none' | readonly string[];

/** An element to register. */
export type ElementOffer<D> = Omit<Element<D>, 'enabled'>;

/** The result of a change. `gone` lists the references whose implementations are no longer needed. */
export type Registered =
  | { readonly ok: true; readonly gone: readonly number[] }
  | { readonly ok: false; readonly why: string };

export interface RegisteredMail {
  readonly type: 'registered';
  readonly registered: Registered;
}

/** A change of a registry. */
export type RegistryChange<D> =
  | { readonly type: 'register'; readonly offer: ElementOffer<D> }
  /** Replaces an element's definition and reference in its place. */
  | { readonly type: 'update'; readonly offer: ElementOffer<D> }
  | { readonly type: 'enable' | 'disable' | 'remove'; readonly key: string }
  /** Replaces all elements of one source in one change; an empty list removes them. */
  | { readonly type: 'replace source'; readonly source: string; readonly offers: readonly ElementOffer<D>[] }
  | { readonly type: 'clear' }
  /** The definitions are the same but their behaviour has changed: clients are notified to list again. */
  | { readonly type: 'announce' };

/** A change, and the mailbox that gets its result. */
type RegistrationMail<D> = RegistryChange<D> & { readonly from?: Mailbox<RegisteredMail> };

export type RegistryMail<D> = RegistrationMail<D> | RequestMail;
