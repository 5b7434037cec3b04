/** Tools that do more than return a result: log, report progress, fail, wait, close a stream, change the offer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode, ProtocolError, type Server } from 'troupe';
import { JSON_SCHEMA_2020_12 } from './json-schema.ts';

/** A call whose process ends during its stream runs again. */
const READ_ONLY = { readOnlyHint: true };
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export function addTools(server: Server): void {
  addTalkative(server);
  addFailing(server);
  addInputs(server);
  addForHttp(server);
  addChanging(server);
}

function addTalkative(server: Server): void {
  server.tool(
    'test_tool_with_logging',
    { description: 'Logs three messages while it runs.', annotations: READ_ONLY },
    async (_, ctx) => {
      ctx.log.info('Tool execution started');
      await sleep(50, undefined, { signal: ctx.signal });
      ctx.log.info('Tool processing data');
      await sleep(50, undefined, { signal: ctx.signal });
      ctx.log.info('Tool execution completed');
      return 'Logged three messages.';
    },
  );

  server.tool('test_logging_tool', { description: 'Logs one message.', annotations: READ_ONLY }, (_, ctx) => {
    ctx.log.info('A message for clients that asked for messages');
    return 'Logged one message.';
  });

  server.tool(
    'log_each_level',
    { description: 'Logs one message of each level, with structured data.', annotations: READ_ONLY },
    (_, ctx) => {
      for (const [severity, level] of LEVELS.entries()) ctx.log(level, { severity }, 'everything');
      return 'Logged eight messages.';
    },
  );

  server.tool(
    'test_tool_with_progress',
    { description: 'Reports progress three times.', annotations: READ_ONLY },
    async (_, ctx) => {
      ctx.progress(0, 100, 'begins');
      await sleep(50, undefined, { signal: ctx.signal });
      ctx.progress(50, 100, 'half of it');
      await sleep(50, undefined, { signal: ctx.signal });
      ctx.progress(100, 100, 'all of it');
      return 'Reported progress.';
    },
  );

  server.tool(
    'print',
    { description: 'Prints to stdout. The output goes to stderr and does not disturb the protocol.' },
    () => {
      console.log('printed by a tool');
      return 'Printed.';
    },
  );
}

function addFailing(server: Server): void {
  server.tool('test_error_handling', { description: 'Throws an error. The model receives the message.' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  server.tool(
    'protocol_error',
    { description: 'Throws a protocol error. The client receives it, the model does not.' },
    () => {
      throw new ProtocolError(ErrorCode.InvalidParams, 'This tool answers no one', { hint: 'call another' });
    },
  );

  server.tool(
    'test_missing_capability',
    { description: 'Requires sampling. Clients without it get a protocol error that names the missing capability.' },
    (_, ctx) => {
      if (ctx.client.capabilities.sampling === undefined)
        throw new ProtocolError(ErrorCode.MissingRequiredClientCapability, 'This tool needs a client that can sample', {
          requiredCapabilities: { sampling: {} },
        });
      return 'The client can sample.';
    },
  );

  server.tool(
    'invalid_output',
    {
      description: 'Returns data that violates its output schema.',
      output: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
    },
    // A type checker rejects this result; a handler in plain JavaScript may return it.
    () => JSON.parse('{ "sum": "not a number" }'),
  );

  server.tool('throw_later', { description: 'Returns a result, and throws later from a timer.' }, () => {
    setTimeout(() => {
      throw new Error('thrown too late');
    }, 10);
    return 'Answered before the throw.';
  });
}

function addInputs(server: Server): void {
  server.tool(
    'json_schema_2020_12_tool',
    { description: 'Accepts arguments of a schema with 2020-12 keywords.', input: JSON_SCHEMA_2020_12 },
    (contact) => `Reached ${JSON.stringify(contact)}.`,
  );

  server.tool('describe_client', { description: 'Describes the calling client as the server sees it.' }, (_, ctx) => ({
    client: { name: ctx.client.info?.name ?? null, version: ctx.client.info?.version ?? null },
    revision: ctx.client.revision,
    era: ctx.client.era,
    session: ctx.session !== undefined,
    principal: ctx.principal,
  }));
}

function addForHttp(server: Server): void {
  server.tool(
    'route_by_region',
    {
      description: 'Has a parameter that HTTP clients also send as a header, so that proxies can route by it.',
      input: {
        type: 'object',
        properties: {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          urgent: { type: 'boolean', 'x-mcp-header': 'Urgent' },
        },
        required: ['region'],
      },
    },
    ({ region, urgent = false }) => `Routed to ${region}${urgent ? ', urgently' : ''}.`,
  );

  server.tool(
    'test_reconnection',
    { description: 'Closes the stream during the call. The client reconnects for the result.', annotations: READ_ONLY },
    async (_, ctx) => {
      const comeBackAfterMs = 50;
      ctx.closeStream(comeBackAfterMs);
      await sleep(2 * comeBackAfterMs, undefined, { signal: ctx.signal });
      return 'The client came back for this.';
    },
  );
}

function addChanging(server: Server): void {
  const waits = { waiting: 0, cancelled: 0 };
  server.tool(
    'wait',
    {
      description: 'Reports progress, then waits for the given number of milliseconds or until it is cancelled.',
      input: {
        type: 'object',
        properties: { ms: { type: 'integer', minimum: 0, maximum: 60_000 } },
        required: ['ms'],
      },
      timeoutMs: 120_000,
    },
    async ({ ms }, ctx) => {
      waits.waiting += 1;
      ctx.progress(0, ms, 'waiting');
      try {
        await sleep(ms, undefined, { signal: ctx.signal });
        return `Waited ${ms} ms.`;
      } finally {
        waits.waiting -= 1;
        if (ctx.signal.aborted) waits.cancelled += 1;
      }
    },
  );
  server.resource(
    'test://waits',
    {
      name: 'waits',
      description: 'The numbers of running and cancelled calls of "wait".',
      mimeType: 'application/json',
    },
    () => JSON.stringify(waits),
  );

  const dynamic = { description: 'Can be added and removed at run time.' };
  server.tool('dynamic_tool', dynamic, () => 'Here now.');
  server.prompt('dynamic_prompt', dynamic, () => 'Here now.');
  server.resource(
    'test://dynamic-resource',
    { ...dynamic, name: 'dynamic-resource', mimeType: 'text/plain' },
    () => 'Here now.',
  );
  const { tools, prompts, resources } = server;
  for (const [kind, elements, key] of [
    ['tool', tools, 'dynamic_tool'],
    ['prompt', prompts, 'dynamic_prompt'],
    ['resource', resources, 'test://dynamic-resource'],
  ] as const) {
    let shown = false;
    elements.disable(key);
    server.tool(`test_trigger_${kind}_change`, { description: `Shows or hides the dynamic ${kind}.` }, () => {
      shown = !shown;
      if (shown) elements.enable(key);
      else elements.disable(key);
      return `The dynamic ${kind} is ${shown ? 'shown' : 'hidden'}.`;
    });
  }
}
