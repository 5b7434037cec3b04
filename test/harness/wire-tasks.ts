/** What the wire says of tasks, held against the schema of 2025-11-25 and that of the extension. */
import { isObject } from '../../src/core/protocol/json.ts';
import { isModernRevision, type Revision } from '../../src/core/protocol/revisions.ts';
import { officialSchema, tasksSchema } from './wire-schemas.ts';

/** For each method, the type of its result in the extension, and in 2025-11-25. */
const RESULTS: Readonly<Record<string, readonly [extension: string, experimental: string]>> = {
  'tasks/get': ['GetTaskResult', 'GetTaskResult'],
  'tasks/cancel': ['CancelTaskResult', 'CancelTaskResult'],
  'tasks/update': ['UpdateTaskResult', 'UpdateTaskResult'],
  'tasks/list': ['ListTasksResult', 'ListTasksResult'],
  'tasks/result': ['CallToolResult', 'CallToolResult'],
};

/** The faults of a result that is about a task; undefined for one that is not. */
export function taskResultFaults(method: string, result: unknown, revision: Revision): readonly string[] | undefined {
  const modern = isModernRevision(revision);
  const created = isObject(result) && (modern ? result.resultType === 'task' : isObject(result.task));
  const types = method === 'tools/call' && created ? ['CreateTaskResult', 'CreateTaskResult'] : RESULTS[method];
  const type = types?.[modern ? 0 : 1];
  if (type === undefined) return undefined;
  const schema = modern ? tasksSchema() : officialSchema(revision);
  const inner = modern && isObject(result) && isObject(result.result) ? result.result : undefined;
  return [
    ...(schema?.faults(type, result) ?? []),
    ...(inner ? (officialSchema(revision)?.faults('CallToolResult', inner) ?? []) : []),
  ];
}

/** The faults of a notification about a task; undefined for one that is not. */
export function taskNoteFaults(message: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  if (message.method !== 'notifications/tasks') return undefined;
  return tasksSchema()?.faults('TaskStatusNotification', message) ?? [];
}
