/** The public surface of Troupe. */

export { type ApprovalRequest, type CallApproval, NotApproved } from './core/execution/approving.ts';
export { audio, embedded, image, link, text } from './core/execution/content.ts';
export type { Context, Log, MethodContext } from './core/execution/context.ts';
export {
  type Envelope,
  type EnvelopeInput,
  type EnvelopeMeta,
  envelopeOf,
  toolResult,
} from './core/execution/envelope.ts';
export type {
  Completer,
  CompletionCall,
  CompletionExecution,
  Execution,
  ExecutionOptions,
  Executions,
  PromptCall,
  PromptExecution,
  ResourceExecution,
  ResourceRead,
  Suggestions,
  TaskSupport,
  ToolCall,
  ToolExecution,
  Variables,
} from './core/execution/execution.ts';
export { CannotAsk, Unanswered } from './core/execution/input-errors.ts';
export type * from './core/execution/questions.ts';
export { type CallGate, type RequestGate, type RunGate, STAGES, type Stage } from './core/execution/stages.ts';
export type * from './core/execution/state.ts';
export { type HttpTransport, http } from './core/http/http.ts';
export type {
  AuthenticatedCaller,
  AuthenticateResult,
  Authentication,
  AuthenticationRequest,
  HttpAuthenticator,
} from './core/http/http-authenticator.ts';
export type { HttpOptions } from './core/http/http-options.ts';
export type { Clock, Timer } from './core/kernel/clock.ts';
export type { ActorKind, InspectionListener, InspectionRecord } from './core/kernel/inspection/records.ts';
export { DEFAULT_LIMITS, type LimitRow, type LimitRows, type Limits } from './core/kernel/limits.ts';
export type { LogEvent, LogFields, LoggedError, OperatorLog } from './core/kernel/operator-log.ts';
export type { Quarantined } from './core/kernel/quarantine.ts';
export type { MetricsFormat } from './core/kernel/telemetry/prometheus.ts';
export type {
  Ended,
  EndedSession,
  QuestionSpan,
  RequestSpan,
  SeenQuestion,
  SeenRequest,
  Telemetry,
} from './core/kernel/telemetry/telemetry.ts';
export type { Auth } from './core/messages/auth.ts';
export type {
  AuthorizationCall,
  AuthorizationContext,
  AuthorizationDecision,
  AuthorizationRule,
  Guarded,
  GuardedElement,
  RuleName,
} from './core/messages/authorization-rule.ts';
export { ErrorCode, type ErrorCodeValue, ProtocolError, ToolError } from './core/protocol/errors.ts';
export type { JsonObject, JsonValue } from './core/protocol/json.ts';
export { type Era, type Revision, SUPPORTED_REVISIONS } from './core/protocol/revisions.ts';
export type { ServerTypes, UntypedServer } from './core/protocol/server-types.ts';
export type { ListedSkillFile, SkillEntry } from './core/protocol/skills.ts';
export type * from './core/protocol/types.ts';
export { TemplateError } from './core/protocol/uri-template.ts';
export type { ReadableCatalogue } from './core/registry/catalogue.ts';
export {
  type Defined,
  definePrompt,
  defineResource,
  defineTool,
  type MachineToolDefinition,
  type MachineToolOptions,
  type PromptDefinition,
  type PromptHandler,
  type PromptOptions,
  type ResourceDefinition,
  type ResourceHandler,
  type ResourceOptions,
  type ThreadToolOptions,
  type ToolDefinition,
  type ToolHandler,
  type ToolOptions,
} from './core/registry/define.ts';
export { DefinitionError } from './core/registry/definition-checks.ts';
export type {
  PromptRegistration,
  RegisteredElement,
  Registration,
  ToolRegistration,
} from './core/registry/registration.ts';
export type { TemplateCompleters, TemplateVariables } from './core/registry/template-variables.ts';
export type { CompiledSchema, Problem } from './core/schema/schema.ts';
export { SchemaError } from './core/schema/schema-error.ts';
export type { AuthorSchema, Infer, InferInput } from './core/schema/schema-types.ts';
export type { Core, Feature, FeatureParts } from './core/server/feature.ts';
export { defineMethod, type FeatureMethod } from './core/server/feature-method.ts';
export { fromPino, jsonLog, type PinoLogger } from './core/server/json-log.ts';
export type { ServerOptions } from './core/server/options.ts';
export { memoryStore } from './core/store/memory-store.ts';
export {
  type ActorRow,
  type DeadLetter,
  type JournalEvent,
  type ListQuery,
  type SnapshotSwap,
  Store,
  type StoreAnswer,
  type Stored,
  type StoredKind,
  StoreError,
  type StoreFault,
  type StoreHost,
  type StoreQuery,
  type StreamRow,
  type TimerRow,
  type Write,
} from './core/store/store.ts';
export { type MemoryClient, type MemoryPeer, memory } from './core/transports/memory.ts';
export { type SocketOptions, socket } from './core/transports/socket.ts';
export { type StdioOptions, stdio } from './core/transports/stdio.ts';
export type { Readiness, Transport, TransportHost, UnreadyReason } from './core/transports/transport.ts';
export { ApprovalError, type ApprovalFault } from './features/approvals/approval-error.ts';
export type {
  Approval,
  ApprovalBy,
  ApprovalDecision,
  ApprovalGrant,
  ApprovalListener,
  ApprovalPolicy,
  ApprovalQuery,
  Approvals,
  Approver,
  GivenApproval,
  RememberPolicy,
} from './features/approvals/approval-interface.ts';
export type { AppDefinition, AppOptions, AppOrigins, AppPermission } from './features/apps/app-options.ts';
export type { AppRegistration, RegisteredApp } from './features/apps/app-registration.ts';
export type { ViewLabels, ViewTexts, ViewWords } from './features/apps/view-texts.ts';
export { elicit, elicitUrl, elicitWith, roots, sample } from './features/asking/invocations.ts';
export type { ClusterOptions } from './features/cluster/cluster-options.ts';
export type { ClusterReport } from './features/cluster/cluster-report.ts';
export type { CodeOptions } from './features/code/code-options.ts';
export type { Discovered, DiscoverOptions } from './features/discovery/discover.ts';
export type {
  EventOptions,
  EventSubscriber,
  MatchedEvent,
  RetainOptions,
} from './features/events/event-definition.ts';
export { EventError, type EventFault } from './features/events/event-error.ts';
export type { RegisteredEvent } from './features/events/event-topics.ts';
export type { CallbackOptions, EventServerOptions } from './features/events/events-options.ts';
export type { ForgottenData } from './features/forgetting/forgotten-data.ts';
export type { AuditOptions } from './features/guard/audit/audit-options.ts';
export type { AuditEvent, AuditQuery, AuditRecord } from './features/guard/audit/audit-record.ts';
export type { CallLimits } from './features/guard/limits/call-limits.ts';
export type { HookAttempt, HookDelivery, HookOptions, HookTarget } from './features/hooks/define-hook.ts';
export type { Hook, HookQuery, HookRecord } from './features/hooks/registered-hooks.ts';
export {
  defineMachine,
  type MachineDefinition,
  type MachineOptions,
} from './features/machines/define-machine.ts';
export { fromSteps, type StepsScope } from './features/machines/durable-steps.ts';
export type { HandleView } from './features/machines/handle-messages.ts';
export type { CreateOption, MachineKey, RoleOptions, RolesOption } from './features/machines/key-options.ts';
export type { KeyHolder, Migrated, OldInstance, SendOptions } from './features/machines/machine-definition.ts';
export type { EventSchemas, InstanceData } from './features/machines/machine-types.ts';
export { type MessageBody, tell } from './features/machines/messages/tell.ts';
export type { MachineRegistration } from './features/machines/registered-machines.ts';
export type { RoleQuery } from './features/machines/role-types.ts';
export type {
  InputRequired,
  Introduction,
  Middleware,
  MiddlewareContext,
  NextFunction,
  NoResult,
  RequestCall,
  RequestMethodName,
  RequestMethods,
  RequestResult,
  TaskInfo,
  TaskStarted,
} from './features/middleware/middleware.ts';
export { postgres } from './features/postgres/postgres.ts';
export type { PostgresOptions } from './features/postgres/postgres-options.ts';
export type {
  MachineSchedule,
  MissedSlots,
  RegisteredSchedule,
  ScheduleContext,
  ScheduleHandler,
  ScheduleOptions,
  ScheduleSlot,
  ScheduleTiming,
  SlotData,
  SlotRules,
} from './features/schedules/schedule-definition.ts';
export { createServer, isServer, type Server } from './features/server/server.ts';
export type { RegisteredSkills, SkillProblem, SkillsOptions } from './features/skills/skills-options.ts';
export { sqlite } from './features/sqlite/sqlite.ts';
export type { SqliteOptions } from './features/sqlite/sqlite-options.ts';
export { type DefinedState, defineState } from './features/state/define-state.ts';
export { StateError, type StateFault } from './features/state/state-error.ts';
export type { Poisoned } from './features/workers/poison-calls.ts';
export type { Supervised } from './features/workers/supervised.ts';
export type { WatchdogOption } from './features/workers/watchdog-option.ts';
export { defineMount, type MountDefinition, type MountRegistration } from './gateway/mounts/define-mount.ts';
export type { Mount, MountChange, MountOptions, MountTarget } from './gateway/mounts/mount-options.ts';
export type { OpenApiOptions } from './gateway/openapi/openapi-settings.ts';
export { openapi } from './gateway/openapi/openapi-target.ts';
