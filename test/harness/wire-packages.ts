/** What the validators of the official packages say of a message: always there, and always asked. */
import { specTypeSchemas } from '@modelcontextprotocol/client';
import * as v1 from '@modelcontextprotocol/sdk/types.js';
import { isObject } from '../../src/core/protocol/json.ts';
import type { Era } from '../../src/core/protocol/revisions.ts';

/** The types that are looked at, by the names that the official schemas give them. */
export type WireType =
  | 'CallToolResult'
  | 'CompleteResult'
  | 'EmptyResult'
  | 'GetPromptResult'
  | 'InitializeResult'
  | 'ListPromptsResult'
  | 'ListResourceTemplatesResult'
  | 'ListResourcesResult'
  | 'ListToolsResult'
  | 'ReadResourceResult'
  | 'JSONRPCMessage'
  | 'ServerNotification';

/** Those that the modern era adds: the package of the first generation has never heard of them. */
export type ModernWireType = WireType | 'DiscoverResult' | 'SubscriptionsListenResult';

const V1 = {
  CallToolResult: v1.CallToolResultSchema,
  CompleteResult: v1.CompleteResultSchema,
  EmptyResult: v1.EmptyResultSchema,
  GetPromptResult: v1.GetPromptResultSchema,
  InitializeResult: v1.InitializeResultSchema,
  ListPromptsResult: v1.ListPromptsResultSchema,
  ListResourceTemplatesResult: v1.ListResourceTemplatesResultSchema,
  ListResourcesResult: v1.ListResourcesResultSchema,
  ListToolsResult: v1.ListToolsResultSchema,
  ReadResourceResult: v1.ReadResourceResultSchema,
  JSONRPCMessage: v1.JSONRPCMessageSchema,
  ServerNotification: v1.ServerNotificationSchema,
} as const;

/** The faults of a value, each in a line of its own: `@modelcontextprotocol/sdk` judges the legacy era, `@modelcontextprotocol/client` both. */
export function packageFaults(type: ModernWireType, value: unknown, era: Era): readonly string[] {
  const faults: string[] = [];
  if (era === 'legacy' && isLegacyType(type)) {
    const parsed = V1[type].safeParse(value);
    for (const { path, message } of parsed.error?.issues ?? [])
      faults.push(`${type}/${path.map(String).join('/')}: ${message} (@modelcontextprotocol/sdk)`);
  }
  // It knows tasks as the extension only, and those of 2025-11-25 not at all.
  if (isTaskStatus(value)) return faults;
  // Its validators are of the model that both eras share: they leave to the JSON schemas what only the wire has, such as `resultType`.
  const checked = specTypeSchemas[type]['~standard'].validate(value);
  for (const { path = [], message } of checked.issues ?? [])
    faults.push(
      `${type}/${path.map((part) => String(typeof part === 'object' ? part.key : part)).join('/')}: ${message} (@modelcontextprotocol/client)`,
    );
  return faults;
}

function isTaskStatus(value: unknown): boolean {
  return isObject(value) && value.method === 'notifications/tasks/status';
}

function isLegacyType(type: ModernWireType): type is WireType {
  return type in V1;
}
