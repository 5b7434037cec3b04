/** The entry point `troupe/webhooks`: verifiers for the webhooks of a server. */
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
