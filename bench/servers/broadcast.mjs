/** Troupe as it is built, with a list, a resource and tasks that change when the process that measures says so: `broadcast.mjs http [STORE]`. */
import { createServer, http, sqlite } from 'troupe';
import { answering, served } from './telling.mjs';

/** Tasks that end in one turn of the event loop: their handlers wait for different things. */
const TASKS_A_TURN = 50;

/** More than anybody opens: what is measured is not the limits. */
const MANY = 1_000_000;

const [, , , store] = process.argv;
const server = createServer({
  name: 'bench',
  version: '1.0.0',
  ...(store === undefined ? {} : { store: sqlite(store) }),
  limits: {
    maxStatelessListens: MANY,
    maxSessions: MANY,
    maxTasks: MANY,
    maxTasksPerPrincipal: MANY,
    maxRunning: MANY,
  },
});
server.tool(
  'echo',
  { input: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } },
  ({ text }) => text,
);
server.resource('doc://1', {}, () => 'text');

/** The handlers of all tasks: each waits until it is told to report, or to end. */
const tasks = [];
let reports = 0;
server.tool('work', { task: 'required' }, (_, ctx) => {
  return new Promise((resolve) => {
    tasks.push({ report: () => ctx.progress(++reports, undefined, `report ${reports}`), end: () => resolve('done') });
    ctx.signal.addEventListener('abort', () => resolve('aborted'));
  });
});

/** When a change begins, in nanoseconds of the system's monotonic clock, which all processes read alike. */
const changing = (change) => () => {
  const at = String(process.hrtime.bigint());
  change();
  return at;
};
answering('list', changing(flicker));
answering(
  'resource',
  changing(() => server.resourceUpdated('doc://1')),
);
answering(
  'task',
  changing(() => tasks[0]?.report()),
);
answering('tasks', changing(endTasks));

function flicker() {
  server.tool('flicker', {}, () => 'here');
  server.tools.remove('flicker');
}

function endTasks() {
  for (const { end } of tasks.splice(0, TASKS_A_TURN)) end();
  if (tasks.length > 0) setImmediate(endTasks);
}

const transport = http({ port: 0, maxExchanges: MANY, maxExchangesPerPrincipal: MANY });
await server.listen(transport);
served(transport.url, () => void server.close().then(() => process.exit()));
