/** The client (`troupe/client`): connects to MCP servers of every revision. */

export type { ServerTypes, UntypedServer } from '../core/protocol/server-types.ts';
export type { ListedSkillFile, SkillEntry } from '../core/protocol/skills.ts';
export type { Authorization, Challenge } from './authorization.ts';
export type {
  CallbackSubscription,
  DeliveryStatus,
  SubscribeOptions,
  SubscriptionState,
} from './callback-subscription.ts';
export type { Channel, ChannelFailure, ChannelHost, ChannelMail, OutgoingMessage } from './channels/channel.ts';
export type { StdioCommand } from './channels/stdio-channel.ts';
export type { ConnectedServer } from './client-connection.actor.ts';
export { type CarriedOut, ClientError, ErrorResponse, type FailureReason } from './client-errors.ts';
export type {
  AnyPrompts,
  AnyResources,
  AnyTools,
  Client,
  CompletionReference,
  Connected,
  PromptsOf,
  ResourcesOf,
  ToolsOf,
} from './client-interface.ts';
export type {
  CallOptions,
  ClientRoot,
  ConnectOptions,
  ConnectTarget,
  ElicitationForm,
  ElicitationPage,
  FormAnswer,
  ListOptions,
  PageAnswer,
  SamplingRequest,
  SamplingResult,
  SamplingSupport,
  ServerLogMessage,
  ServerProgress,
  ServerRequestContext,
} from './client-options.ts';
export { ClientTask } from './client-task.ts';
export { type FileTokensOptions, fileTokens } from './oauth/file-tokens.ts';
export { type OAuthOptions, oauth, type SignedOut, signOut } from './oauth/resource-grant.ts';
export { memoryTokens, type TokenStore } from './oauth/token-store.ts';
export { connect } from './open-client.ts';
export { Changes, type ChangesFilter, type ServerChange } from './server-changes.ts';
export type { EventGap, EventsOptions, ServerEvent, ServerEvents, ServerEventType } from './server-events.ts';
export { Skill, type SkillFile } from './server-skills.ts';
