/** The public surface of Troupe. */

export type { Quarantined } from './actor/quarantine.ts';
export type { AppDefinition, AppOptions, AppOrigins, AppPermission } from './apps/app-options.ts';
export type { AppRegistration, RegisteredApp } from './apps/app-registration.ts';
export type { AuditOptions } from './audit/audit-options.ts';
export type { AuditEvent, AuditQuery, AuditRecord } from './audit/audit-record.ts';
export type { Clock, Timer } from './clock.ts';
export type { Discovered, DiscoverOptions } from './discovery/discover.ts';
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
  ToolCall,
  ToolExecution,
  Variables,
} from './executors/execution.ts';
export {
  defineMachine,
  type EventSchemas,
  type MachineDefinition,
  type MachineOptions,
} from './handles/define-machine.ts';
export { fromSteps, type StepsScope } from './handles/durable-steps.ts';
export type { Migrated, OldInstance } from './handles/machine-definition.ts';
export type { MachineRegistration } from './handles/registered-machines.ts';
export type { Context, Log } from './input/context.ts';
export { CannotAsk, Unanswered } from './input/input-errors.ts';
export { elicit, elicitUrl, elicitWith, roots, sample } from './input/invocations.ts';
export type * from './input/questions.ts';
export type { ActorKind, InspectionListener, InspectionRecord } from './inspection/records.ts';
export { fromPino, jsonLog, type PinoLogger } from './json-log.ts';
export { DEFAULT_LIMITS, type Limits } from './limits.ts';
export type { Auth } from './messages/auth.ts';
export type {
  AuthorizationCall,
  AuthorizationContext,
  AuthorizationDecision,
  AuthorizationRule,
  Guarded,
  GuardedElement,
} from './messages/authorization-rule.ts';
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
} from './middleware/middleware.ts';
export { defineMount, type MountDefinition, type MountRegistration } from './mounts/define-mount.ts';
export type { Mount, MountChange, MountOptions, MountTarget } from './mounts/mount-options.ts';
export type { ClusterOptions } from './nodes/cluster-options.ts';
export type { ClusterReport } from './nodes/cluster-report.ts';
export type { LogEvent, LogFields, LoggedError, OperatorLog } from './operator-log.ts';
export type { ServerOptions } from './options.ts';
export { ErrorCode, type ErrorCodeValue, ProtocolError, ToolError } from './protocol/errors.ts';
export type { JsonObject, JsonValue } from './protocol/json.ts';
export { type Era, type Revision, SUPPORTED_REVISIONS } from './protocol/revisions.ts';
export type { ListedSkillFile, SkillEntry } from './protocol/skills.ts';
export type * from './protocol/types.ts';
export { TemplateError } from './protocol/uri-template.ts';
export type { ReadableCatalogue } from './registry/catalogue.ts';
export {
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
} from './registry/define.ts';
export { DefinitionError } from './registry/definition-checks.ts';
export type { PromptRegistration, RegisteredElement, Registration, ToolRegistration } from './registry/registration.ts';
export type { TemplateCompleters, TemplateVariables } from './registry/template-variables.ts';
export { audio, embedded, image, link, text } from './results/content.ts';
export { type Envelope, type EnvelopeInput, type EnvelopeMeta, envelopeOf, toolResult } from './results/envelope.ts';
export type { Supervised } from './runtime/supervised.ts';
export type { CompiledSchema, Problem } from './schema/schema.ts';
export { SchemaError } from './schema/schema-error.ts';
export type { AuthorSchema, Infer, InferInput } from './schema/schema-types.ts';
export { createServer, isServer, type Server } from './server.ts';
export type { RegisteredSkills, SkillProblem, SkillsOptions } from './skills/skills-options.ts';
export { memoryStore } from './store/memory-store.ts';
export { postgres } from './store/postgres/postgres.ts';
export type { PostgresOptions } from './store/postgres/postgres-options.ts';
export { sqlite } from './store/sqlite/sqlite.ts';
export type { SqliteOptions } from './store/sqlite/sqlite-options.ts';
export {
  type ActorRow,
  type DeadLetter,
  type JournalEvent,
  type ListQuery,
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
} from './store/store.ts';
export type { TaskSupport } from './tasks/call-mode.ts';
export type { MetricsFormat } from './telemetry/prometheus.ts';
export type {
  Ended,
  EndedSession,
  QuestionSpan,
  RequestSpan,
  SeenQuestion,
  SeenRequest,
  Telemetry,
} from './telemetry/telemetry.ts';
export type { CallLimits } from './tool-limits/call-limits.ts';
export { type HttpTransport, http } from './transports/http/http.ts';
export type {
  AuthenticatedCaller,
  AuthenticateResult,
  Authentication,
  AuthenticationRequest,
  HttpAuthenticator,
} from './transports/http/http-authenticator.ts';
export type { HttpOptions } from './transports/http/http-options.ts';
export { type MemoryClient, type MemoryPeer, memory } from './transports/memory.ts';
export { type SocketOptions, socket } from './transports/socket.ts';
export { type StdioOptions, stdio } from './transports/stdio.ts';
export type { Readiness, Transport, TransportHost, UnreadyReason } from './transports/transport.ts';
export type { WatchdogOption } from './watchdog-option.ts';
export type { Poisoned } from './workers/poison-calls.ts';
