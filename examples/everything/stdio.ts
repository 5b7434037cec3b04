/** Serves the everything server on stdio, without the command line tool. */
import { stdio } from 'troupe';
import server from './server.ts';

await server.listen(stdio());
