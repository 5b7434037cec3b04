/** The public surface of Troupe. */

export type { SetAside } from './actors/quarantine.ts';
export { CannotAsk, Unanswered } from './asking/errors.ts';
export { elicit, elicitUrl, elicitWith, roots, sample } from './asking/invocations.ts';
export type * from './asking/questions.ts';
export type { Clock, Timer } from './clock.ts';
export type { Discovered, DiscoverOptions } from './discovery/discover.ts';
export type { Context, Log } from './execution/context.ts';
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
} from './execution/execution.ts';
export type { Migrated, OldInstance } from './handles/kind.ts';
export { fromSteps, type StepsScope } from './handles/steps.ts';
export type { PromptRegistration, RegisteredElement, Registration, ToolRegistration } from './hosting/elements.ts';
export type { MachineRegistration } from './hosting/machines.ts';
export type { Supervised } from './hosting/supervision.ts';
export type { ActorKind, InspectionListener, InspectionRecord } from './inspection/records.ts';
export { DEFAULT_LIMITS, type Limits, type OperatorLog, type ServerOptions } from './options.ts';
export { ErrorCode, type ErrorCodeValue, ProtocolError } from './protocol/errors.ts';
export type { JsonObject, JsonValue } from './protocol/json.ts';
export { type Era, type Revision, SUPPORTED_REVISIONS } from './protocol/revisions.ts';
export type * from './protocol/types.ts';
export { TemplateError } from './protocol/uri-template.ts';
export { DefinitionError } from './registration/checks.ts';
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
} from './registration/define.ts';
export {
  defineMachine,
  type EventSchemas,
  type MachineDefinition,
  type MachineOptions,
} from './registration/machine.ts';
export type { ReadableCatalogue } from './registry/catalogue.ts';
export { audio, embedded, image, link, text } from './results/content.ts';
export { type Envelope, type EnvelopeInput, type EnvelopeMeta, envelopeOf, toolResult } from './results/envelope.ts';
export { SchemaError } from './schema/error.ts';
export type { CompiledSchema, Problem } from './schema/schema.ts';
export type { AuthorSchema, Infer, InferInput } from './schema/types.ts';
export { createServer, isServer, type Server } from './server.ts';
export { memoryStore } from './store/memory.ts';
export { sqlite } from './store/sqlite.ts';
export type { SqliteOptions } from './store/sqlite-options.ts';
export {
  type ActorRow,
  type DeadLetter,
  type JournalEvent,
  type ListQuery,
  type Store,
  type Stored,
  type StoredKind,
  StoreError,
  type StoreFault,
  type StoreHost,
  type StreamRow,
  type TimerRow,
  type Write,
} from './store/store.ts';
export type { Poisoned } from './supervision/poison.ts';
export type { WatchdogOption } from './supervision/watchdog-option.ts';
export { type HttpTransport, http } from './transports/http/http.ts';
export type { AuthenticationRequest, HttpOptions } from './transports/http/options.ts';
export { type MemoryClient, type MemoryPeer, memory } from './transports/memory.ts';
export { type SocketOptions, socket } from './transports/socket.ts';
export { type StdioOptions, stdio } from './transports/stdio.ts';
export type { Transport, TransportHost } from './transports/transport.ts';
