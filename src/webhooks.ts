/** The entry point `troupe/webhooks`: verifiers for the webhooks of a server, and the receiver of the events of MCP servers. */
export {
  type ReceivedEnd,
  type ReceivedEvent,
  type ReceivedGap,
  type ReceivedIds,
  type Receiver,
  type ReceiverOptions,
  type ReceiverSecrets,
  receiver,
} from './features/hooks/event-receiver.ts';
export type { HookProof, HookRequest, HookVerifier } from './features/hooks/hook-request.ts';
export {
  type BodyHookSecret,
  type DatedHookSecret,
  github,
  type HmacOptions,
  type HookSecret,
  hmac,
  slack,
  standardWebhooks,
  stripe,
} from './features/hooks/hook-verifiers.ts';
