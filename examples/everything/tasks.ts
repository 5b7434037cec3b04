/**
 * Tools whose calls outlive their requests: always, or if they take long. With a durable store their tasks also outlive the
 * process: a second run has no second effect (`rerun`).
 */
import { setTimeout } from 'node:timers/promises';
import { ErrorCode, ProtocolError, type Server } from 'troupe';
import * as z from 'zod';

const CONFIRM = z.object({ confirm: z.boolean() });

export function addTasks(server: Server): void {
  server.tool(
    'greet',
    { description: 'Returns a greeting immediately.', input: z.object({ name: z.string() }) },
    ({ name }) => `Hello, ${name}!`,
  );
  server.tool(
    'slow_compute',
    {
      description: 'Computes for the given number of seconds. A long computation becomes a task.',
      input: z.object({ seconds: z.number().min(0).max(600), label: z.string().default('it') }),
      task: 'allowed',
      rerun: true,
    },
    async ({ seconds, label }, ctx) => {
      ctx.progress(0, seconds, `computing ${label}`);
      // A second run continues after the last second that the first one has recorded.
      for (let done = 0; done < seconds; done += 1)
        await ctx.step(`second ${done + 1}`, async () => {
          await setTimeout(Math.min(seconds - done, 1) * 1_000, undefined, { signal: ctx.signal });
          return done + 1;
        });
      return `computed ${label}`;
    },
  );
  server.tool(
    'failing_job',
    { description: 'A task whose tool fails. It completes with an error result.', task: 'required', rerun: true },
    async (_, ctx) => {
      await setTimeout(1_000, undefined, { signal: ctx.signal });
      throw new Error('the job has failed');
    },
  );
  server.tool(
    'protocol_error_job',
    { description: 'A task that fails with a protocol error.', task: 'required', rerun: true },
    async () => {
      throw new ProtocolError(ErrorCode.InternalError, 'the job cannot be run at all');
    },
  );
  server.tool(
    'confirm_delete',
    {
      description: 'A task that asks for confirmation. It deletes nothing.',
      input: z.object({ filename: z.string() }),
      task: 'required',
      rerun: true,
    },
    async ({ filename }, ctx) => {
      const answer = await ctx.elicit({ message: `Delete ${filename}?`, schema: CONFIRM });
      return answer.status === 'accepted' && answer.content.confirm ? `deleted ${filename}` : `kept ${filename}`;
    },
  );
  server.tool(
    'multi_input',
    { description: 'A task with two simultaneous input requests.', task: 'required', rerun: true },
    async (_, ctx) => {
      const { name, confirm } = await ctx.ask({
        name: { elicit: { message: 'What is your name?', schema: z.object({ name: z.string() }) } },
        confirm: { elicit: { message: 'Go on?', schema: CONFIRM } },
      });
      return `${name.status}, ${confirm.status}`;
    },
  );
  server.tool(
    'test_tool_with_task',
    {
      description: 'Asks for a name, then continues as a task if the client supports tasks.',
      task: 'allowed',
      rerun: true,
    },
    async (_, ctx) => {
      const { user_name: answer } = await ctx.ask({
        user_name: { elicit: { message: 'What is your name?', schema: z.object({ name: z.string() }) } },
      });
      await setTimeout(1_000, undefined, { signal: ctx.signal });
      return `Hello, ${answer.status === 'accepted' ? answer.content.name : 'whoever you are'}!`;
    },
  );
}
