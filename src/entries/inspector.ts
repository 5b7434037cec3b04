/** The inspector (`troupe/inspector`): a page on this machine that shows a running server, and recordings of one. */

export type * from '../inspector/frames.ts';
export { FORMAT, REDACTED } from '../inspector/frames.ts';
export {
  type InspectorOptions,
  type OpenInspector,
  openInspector,
  type RecordingOptions,
  record,
} from '../inspector/open-inspector.ts';
export type { RedactOptions } from '../inspector/redaction/redact.ts';
export { type Recorder, readRecording } from '../inspector/stream/recording.ts';
