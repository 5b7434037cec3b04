/** Tasks: calls that outlive their requests. */
import type { Feature } from '../../core/server/feature.ts';
import { asking } from '../asking/asking.feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { TASK_METHODS } from './task-methods.ts';
import { TaskRecords } from './task-records.ts';
import { TaskTable } from './task-table.ts';
import { Tasks } from './tasks.ts';

export const tasks: Feature<TaskTable> = {
  name: 'tasks',
  open(core) {
    const { system, limits, quotas, store, stages, capabilities, subscriptions, elements } = core;
    const { interactive, requestLog } = core.service(asking);
    const table = new TaskTable(quotas);
    const opened = new Tasks({
      ...{ system, limits, table, interactive, requestLog, stages, capabilities, subscriptions },
      contexts: elements,
      execution: () => elements.calling,
      records: store.durable ? new TaskRecords({ system, store, requestLog, limits }) : undefined,
      shared: core.service(cluster).shared,
    });
    system.metrics.gauge('troupe.tasks', '{task}', 'Tasks that have not expired.', () => quotas.tasks.all);
    elements.offeredTool.push(({ task }) => {
      if (task === 'never') return;
      capabilities.add('tasks');
      opened.begin();
    });
    opened.recoverBy(elements.registries.tools);
    return {
      service: table,
      methods: TASK_METHODS,
      serves: { tasks: opened },
      watched: table,
      holds: opened,
      async finish(reason) {
        await interactive.finished();
        await opened.stop(reason);
      },
    };
  },
};
