/** What a session hears: types only. */
import type { InFlight } from './in-flight.ts';
import type { RequestMail } from './requests.ts';

export type SessionMail =
  /** A request of its client. */
  | RequestMail
  /** A request that came back through the in-flight table because the session itself serves it. */
  | { readonly type: 'serve'; readonly request: InFlight }
  /** The resources registry knows the uri: watch it. */
  | { readonly type: 'subscribe'; readonly request: InFlight; readonly uri: string }
  | { readonly type: 'initialized' }
  | { readonly type: 'list changed'; readonly what: ListKind }
  | { readonly type: 'resource updated'; readonly uri: string }
  | { readonly type: 'close'; readonly reason: string };

export type ListKind = 'tools' | 'resources' | 'prompts';
