/** The methods of tasks: an extension in the modern era, experimental in 2025-11-25. */
import { misfit } from '../../core/protocol/errors.ts';
import { isObject } from '../../core/protocol/json.ts';
import { BOTH_ERAS, LEGACY_ERA, MODERN_ERA, type RequestMethod } from '../../core/protocol/methods.ts';
import { cursorOf, type Params, textMember } from '../../core/protocol/operations.ts';

/** A request about one task. */
export type OneTask =
  | { readonly method: 'tasks/get' | 'tasks/cancel' | 'tasks/result'; readonly taskId: string }
  | {
      readonly method: 'tasks/update';
      readonly taskId: string;
      /** Responses by key. Keys that the task does not wait for are ignored. */
      readonly responses: Readonly<Record<string, unknown>>;
    };

type ListTasks = { readonly method: 'tasks/list'; readonly cursor: string | undefined };

declare module '../../core/protocol/operations.ts' {
  interface Operations {
    readonly tasks: OneTask | ListTasks;
  }
}

const readTask =
  (method: 'tasks/get' | 'tasks/cancel' | 'tasks/result') =>
  (params: Params): OneTask => ({ method, taskId: textMember(params, 'taskId') });

function readUpdateTask(params: Params): OneTask {
  const taskId = textMember(params, 'taskId');
  const responses = params?.inputResponses;
  if (!isObject(responses)) throw misfit('inputResponses', 'an object', responses);
  return { method: 'tasks/update', taskId, responses };
}

const readListTasks = (params: Params): ListTasks => ({ method: 'tasks/list', cursor: cursorOf(params) });

const TASK = { kind: 'request', needs: 'tasks', named: 'taskId' } as const;

export const TASK_METHODS = {
  'tasks/get': { ...TASK, eras: BOTH_ERAS, served: { by: 'tasks', read: readTask('tasks/get') } },
  'tasks/update': { ...TASK, eras: MODERN_ERA, served: { by: 'tasks', read: readUpdateTask } },
  'tasks/cancel': { ...TASK, eras: BOTH_ERAS, served: { by: 'tasks', read: readTask('tasks/cancel') } },
  'tasks/list': { kind: 'request', eras: LEGACY_ERA, needs: 'tasks', served: { by: 'tasks', read: readListTasks } },
  'tasks/result': {
    kind: 'request',
    eras: LEGACY_ERA,
    needs: 'tasks',
    served: { by: 'tasks', read: readTask('tasks/result') },
  },
} as const satisfies Readonly<Record<string, RequestMethod>>;
