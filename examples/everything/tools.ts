/** Tools that do more than answer: log, report progress, fail, wait, let go of a stream, change what is offered. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ErrorCode, ProtocolError, type Server } from 'troupe';
import { JSON_SCHEMA_2020_12 } from './json-schema.ts';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

export function addTools(server: Server): void {
  addTalkative(server);
  addFailing(server);
  addInputs(server);
  addForHttp(server);
  addChanging(server);
}

function addTalkative(server: Server): void {
  server.tool('test_tool_with_logging', { description: 'Logs three messages while it runs.' }, async (_, ctx) => {
    ctx.log.info('Tool execution started');
    await sleep(50, undefined, { signal: ctx.signal });
    ctx.log.info('Tool processing data');
    await sleep(50, undefined, { signal: ctx.signal });
    ctx.log.info('Tool execution completed');
    return 'Logged three messages.';
  });

  server.tool('test_logging_tool', { description: 'Logs one message.' }, (_, ctx) => {
    ctx.log.info('A message for clients that asked for messages');
    return 'Logged one message.';
  });

  server.tool('log_each_level', { description: 'Logs one message of each level, with structured data.' }, (_, ctx) => {
    for (const [severity, level] of LEVELS.entries()) ctx.log(level, { severity }, 'everything');
    return 'Logged eight messages.';
  });

  server.tool('test_tool_with_progress', { description: 'Reports progress three times.' }, async (_, ctx) => {
    ctx.progress(0, 100, 'begins');
    await sleep(50, undefined, { signal: ctx.signal });
    ctx.progress(50, 100, 'half of it');
    await sleep(50, undefined, { signal: ctx.signal });
    ctx.progress(100, 100, 'all of it');
    return 'Reported progress.';
  });

  server.tool('print', { description: 'Prints to stdout. The protocol is not harmed: it goes to stderr.' }, () => {
    console.log('printed by a tool');
    return 'Printed.';
  });
}

function addFailing(server: Server): void {
  server.tool('test_error_handling', { description: 'Throws. The model reads the message.' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  server.tool('protocol_error', { description: 'Throws a protocol error. The client gets it, no model does.' }, () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'This tool answers no one', { hint: 'call another' });
  });

  server.tool(
    'test_missing_capability',
    { description: 'Serves clients that offer sampling. Any other gets a protocol error that names what is missing.' },
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
      description: 'Returns data that breaks its own output schema.',
      output: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
    },
    // What a type checker would refuse, as a handler in plain JavaScript may do.
    () => JSON.parse('{ "sum": "not a number" }'),
  );

  server.tool('throw_later', { description: 'Answers, and throws afterwards from a timer that it left.' }, () => {
    setTimeout(() => {
      throw new Error('thrown too late');
    }, 10);
    return 'Answered before the throw.';
  });
}

function addInputs(server: Server): void {
  server.tool(
    'json_schema_2020_12_tool',
    { description: 'Takes what a schema with 2020-12 keywords describes.', input: JSON_SCHEMA_2020_12 },
    (contact) => `Reached ${JSON.stringify(contact)}.`,
  );

  server.tool('describe_client', { description: 'Tells what the server knows of the client that asks.' }, (_, ctx) => ({
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
      description: 'Takes a parameter that HTTP clients mirror into a header, for proxies to route by.',
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
    { description: 'Lets go of the connection in the middle of the call. The client comes back for the answer.' },
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
      description:
        'Says in a progress message that it waits, and waits for some milliseconds, or until it is cancelled.',
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
    { name: 'waits', description: 'How many calls of "wait" run, and were cancelled.', mimeType: 'application/json' },
    () => JSON.stringify(waits),
  );

  const tool = server.tool('dynamic_tool', { description: 'Comes and goes.' }, () => 'Here now.');
  const prompt = server.prompt('dynamic_prompt', { description: 'Comes and goes.' }, () => 'Here now.');
  const resource = server.resource(
    'test://dynamic-resource',
    { name: 'dynamic-resource', description: 'Comes and goes.', mimeType: 'text/plain' },
    () => 'Here now.',
  );
  for (const [kind, element] of Object.entries({ tool, prompt, resource })) {
    let shown = false;
    element.disable();
    server.tool(`test_trigger_${kind}_change`, { description: `Shows or hides the dynamic ${kind}.` }, () => {
      shown = !shown;
      if (shown) element.enable();
      else element.disable();
      return `The dynamic ${kind} is ${shown ? 'shown' : 'hidden'}.`;
    });
  }
}
