/** The testing kit (`troupe/testing`): a client in memory, a clock that is moved by hand, a player of wire transcripts, and the coverage of statecharts. */
export { type CoverageWatch, watchCoverage } from './inspector/coverage.ts';
export type { Coverage } from './inspector/model/coverage.ts';
export { TestClient, type TestClientOptions } from './testing/client.ts';
export { SimulatedClock, settled } from './testing/clock.ts';
export { connect } from './testing/connect.ts';
export { ErrorAnswer, type SeenMessage, type SeenNotification, type Wire } from './testing/messages.ts';
export { type PlayOptions, playTranscript } from './testing/player.ts';
export { parseTranscript, type Step, type Transcript } from './testing/transcript.ts';
