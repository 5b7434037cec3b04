/** Serves the everything server on stdio, with no command line tool between. */
import { stdio } from 'troupe';
import server from './server.ts';

await server.listen(stdio());
