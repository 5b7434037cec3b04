/** The testing kit (`troupe/testing`): a client in memory, a clock that is moved by hand, a player of wire transcripts, and the coverage of statecharts. */

export type { Coverage } from '../inspector/model/chart-coverage.ts';
export { type CoverageWatch, watchCoverage } from '../inspector/stream/coverage-counter.ts';
export { type ConnectToServerOptions, connect } from '../testing/connect.ts';
export { type FakeIssuer, type FakeIssuerOptions, type FakeToken, fakeIssuer } from '../testing/fake-issuer.ts';
export { type PlayOptions, playTranscript } from '../testing/player.ts';
export { SimulatedClock, settled } from '../testing/simulated-clock.ts';
export { TestClient, type TestClientOptions } from '../testing/test-client.ts';
export { parseTranscript, type Step, type Transcript } from '../testing/transcript.ts';
export { ErrorAnswer, type SeenMessage, type SeenNotification, type Wire } from '../testing/wire.ts';
