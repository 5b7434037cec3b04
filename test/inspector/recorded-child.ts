/** Serves and records itself into the file that it is given, and says when there is something in it. */
import { readFileSync } from 'node:fs';
import { createServer } from '../../src/index.ts';
import { record } from '../../src/inspector/inspector.ts';
import { connect } from '../../src/testing/testing.ts';
import { until } from '../harness/wait.ts';

const server = createServer({ name: 'recorded', version: '1.0.0' });
server.tool('echo', {}, () => 'echo');
const file = process.argv[2] ?? '';
await record(server, file);
const client = await connect(server);
await client.initialize();
for (let count = 0; count < 3; count += 1) await client.call('echo');
await until(() => readFileSync(file, 'utf8').split('"type":"wire"').length > 6, 'the record');
process.stdout.write('recorded\n');
setInterval(() => {}, 1_000);
