/** A server that offers one of each thing: for trying out clients, for the conformance suite, and to copy from. */
import { createServer, type Server } from 'troupe';
import { addAsks } from './asks.ts';
import { addContent } from './content.ts';
import { ICON } from './media.ts';
import { addPrompts } from './prompts.ts';
import { addResources } from './resources.ts';
import { addTasks } from './tasks.ts';
import { addTools } from './tools.ts';

const pageSize = Number(process.env.EVERYTHING_PAGE_SIZE ?? 1_000);

const server: Server = createServer({
  name: 'everything',
  title: 'Everything',
  version: '1.0.0',
  description: 'One of each thing that an MCP server can offer.',
  icons: [ICON],
  instructions: 'Call any tool: none has a lasting effect. "echo" answers what it is given.',
  // A call that takes a second is to be a task: the default would leave that to chance.
  limits: { pageSize, taskAfterMs: 250 },
});

addContent(server);
addResources(server);
addPrompts(server);
addTasks(server);
addTools(server);
addAsks(server);

export default server;
