/** Tasks: calls that outlive their requests. */
import { Lazy } from '../../core/kernel/lazy.ts';
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
    const asked = core.service(asking);
    const table = new Lazy(() => new TaskTable(quotas));
    const opened = new Lazy(() => {
      const { interactive, requestLog } = asked;
      const created = new Tasks({
        ...{ system, limits, interactive, requestLog, stages, capabilities, subscriptions },
        table: table.value,
        contexts: elements,
        execution: () => elements.calling,
        records: store.durable ? new TaskRecords({ system, store, requestLog, limits }) : undefined,
        shared: core.service(cluster).shared,
      });
      core.bus.on('principal.forgotten', (forgotten) => created.forget(forgotten));
      created.recoverBy(elements.registries.tools);
      return created;
    });
    system.metrics.gauge('troupe.tasks', '{task}', 'Tasks that have not expired.', () => quotas.tasks.all);
    elements.offeredTool.push(({ task }) => {
      if (task === 'never') return;
      capabilities.add('tasks');
      opened.value.begin();
    });
    // The store may have tasks of another process.
    const stored = store.durable ? opened.value : undefined;
    return {
      get service() {
        return table.value;
      },
      methods: TASK_METHODS,
      serves: { tasks: { send: (mail) => opened.value.send(mail) } },
      watched: { look: (client, id) => table.created?.look(client, id) },
      ...(stored && { holds: stored, started: () => stored.started() }),
      async finish(reason) {
        if (!opened.created) return;
        await asked.interactive.finished();
        await opened.created.stop(reason);
      },
    };
  },
};
