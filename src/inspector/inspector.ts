/** The inspector (`troupe/inspector`): a page on this machine that shows a running server, and recordings of one. */

export type * from './frames.ts';
export { FORMAT, REDACTED } from './frames.ts';
export {
  type InspectorOptions,
  type OpenInspector,
  openInspector,
  type RecordingOptions,
  record,
} from './open-inspector.ts';
export type { RedactOptions } from './redaction/redact.ts';
export { type Recorder, readRecording } from './stream/recording.ts';
