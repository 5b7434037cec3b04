/** A server with one example of every feature: to test clients, for the conformance suite, and to copy from. */
import { createServer, type Server } from 'troupe';
import { addApps } from './apps.ts';
import { addAsks } from './asks.ts';
import { addContent } from './content.ts';
import { ICON } from './media.ts';
import { addPrompts } from './prompts.ts';
import { addResources } from './resources.ts';
import { addSkills } from './skills.ts';
import { addTasks } from './tasks.ts';
import { addTools } from './tools.ts';

const pageSize = Number(process.env.EVERYTHING_PAGE_SIZE ?? 1_000);

const server: Server = createServer({
  name: 'everything',
  title: 'Everything',
  version: '1.0.0',
  description: 'One example of every feature of an MCP server.',
  icons: [ICON],
  instructions: 'Call any tool: none has a lasting effect. "echo" answers what it is given.',
  // A call of one second becomes a task. The default threshold would make the outcome random.
  limits: { pageSize, taskAfterMs: 250 },
});

addContent(server);
addResources(server);
addPrompts(server);
addSkills(server);
addTasks(server);
addTools(server);
addAsks(server);
addApps(server);

export default server;
