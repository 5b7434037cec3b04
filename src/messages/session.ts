/** What a session hears: types only. */
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { InputRequest, Reply } from './asking.ts';
import type { InFlight } from './in-flight.ts';
import type { RequestMail } from './requests.ts';

/** A question to the client of a session, for one of its requests. */
export interface AskMail {
  readonly type: 'ask';
  readonly about: InFlight;
  readonly input: InputRequest;
  reply(reply: Reply): void;
}

export type SessionMail =
  /** A request of its client. */
  | RequestMail
  /** A request that came back through the in-flight table because the session itself serves it. */
  | { readonly type: 'serve'; readonly request: InFlight }
  | AskMail
  /** Nobody waits for the answer to this any more. */
  | { readonly type: 'withdraw'; readonly ask: AskMail; readonly reason: string }
  /** The client has answered a request of ours. */
  | { readonly type: 'response'; readonly id: RequestId; readonly reply: Reply }
  | { readonly type: 'initialized' }
  | { readonly type: 'list changed'; readonly what: ListKind }
  /** A resource that it watches has changed. */
  | { readonly type: 'resource updated'; readonly uri: string }
  | { readonly type: 'close'; readonly reason: string };

export type ListKind = 'tools' | 'resources' | 'prompts';
