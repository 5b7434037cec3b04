/** The testing kit (`troupe/testing`): a client in memory, a clock that is moved by hand, a player of wire transcripts, and the coverage of statecharts. */

export { ClientError, ErrorResponse } from '../client/client-errors.ts';
export type { Coverage } from '../inspector/model/chart-coverage.ts';
export { type CoverageWatch, watchCoverage } from '../inspector/stream/coverage-counter.ts';
export { type ConnectToServerOptions, connect, type TestClientOf } from './connect.ts';
export { type FakeIssuer, type FakeIssuerOptions, type FakeToken, fakeIssuer } from './fake-issuer.ts';
export { type PlayOptions, playTranscript } from './player.ts';
export { SimulatedClock, settled } from './simulated-clock.ts';
export { TestClient, type TestClientOptions } from './test-client.ts';
export { parseTranscript, type Step, type Transcript } from './transcript.ts';
export type { SeenMessage, SeenNotification, Wire } from './wire.ts';
