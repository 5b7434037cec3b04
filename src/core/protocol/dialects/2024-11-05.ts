/** 2024-11-05 is the first revision, on which every later one builds. */
import { ErrorCode } from '../errors.ts';
import type { Dialect } from './dialect.ts';

export const dialect20241105: Dialect = {
  revision: '2024-11-05',
  era: 'legacy',
  batching: false,
  shown: {
    implementation: ['name', 'version'],
    capabilities: ['tools', 'resources', 'prompts', 'logging', 'experimental', 'extensions', 'events'],
    tool: ['name', 'description', 'inputSchema'],
    resource: ['uri', 'name', 'description', 'mimeType', 'size', 'annotations'],
    resourceTemplate: ['uriTemplate', 'name', 'description', 'mimeType', 'annotations'],
    prompt: ['name', 'description', 'arguments'],
    promptArgument: ['name', 'description', 'required'],
    progress: ['progressToken', 'progress', 'total'],
  },
  content: ['text', 'image', 'resource'],
  structured: 'none',
  forms: 'none',
  progressResetsDeadline: false,
  selfDescribing: false,
  sampledBlocks: 'one',
  samplingContext: 'all',
  elicitationIds: false,
  tasks: 'none',
  resourceNotFound: ErrorCode.ResourceNotFound,
  errorWithoutId: 'null',
  resumableStreams: false,
  primesStreams: false,
};
