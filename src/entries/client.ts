/** The client (`troupe/client`): connects to MCP servers of every revision. */

export type { Authorization, Challenge } from '../client/authorization.ts';
export type { Channel, ChannelFailure, ChannelHost, ChannelMail, OutgoingMessage } from '../client/channels/channel.ts';
export type { StdioCommand } from '../client/channels/stdio-channel.ts';
export type { ConnectedServer } from '../client/client-connection.actor.ts';
export { type CarriedOut, ClientError, ErrorResponse, type FailureReason } from '../client/client-errors.ts';
export type {
  CallOptions,
  ClientRoot,
  ConnectOptions,
  ConnectTarget,
  ElicitationForm,
  ElicitationPage,
  FormAnswer,
  PageAnswer,
  SamplingRequest,
  SamplingResult,
  SamplingSupport,
  ServerLogMessage,
  ServerProgress,
  ServerRequestContext,
} from '../client/client-options.ts';
export { ClientTask } from '../client/client-task.ts';
export { Client, type CompletionReference, type ListOptions } from '../client/connected-client.ts';
export { type FileTokensOptions, fileTokens } from '../client/oauth/file-tokens.ts';
export { type OAuthOptions, oauth, type SignedOut, signOut } from '../client/oauth/resource-grant.ts';
export { memoryTokens, type TokenStore } from '../client/oauth/token-store.ts';
export { connect } from '../client/open-client.ts';
export { Changes, type ChangesFilter, type ServerChange } from '../client/server-changes.ts';
export { Skill, type SkillFile } from '../client/server-skills.ts';
export type { ListedSkillFile, SkillEntry } from '../core/protocol/skills.ts';
