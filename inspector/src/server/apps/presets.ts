/** The differences between chat clients as hosts of views, as of July 2026. */

export type Mode = 'inline' | 'fullscreen' | 'pip';

export interface Preset {
  readonly name: string;
  /** Capabilities that the host declares. */
  readonly declares: readonly string[];
  /** Methods that it refuses with -32601, whatever it declares. */
  readonly refuses: readonly string[];
  /** It passes on calls of tools in its `tools/list` only. */
  readonly listedOnly?: true;
  /** Its frame, in pixels: with a fixed height, or as high as the view up to a maximum. */
  readonly height?: number;
  readonly maxHeight?: number;
  readonly modes: readonly Mode[];
}

const ALL = ['openLinks', 'serverTools', 'serverResources', 'logging', 'updateModelContext', 'message'];
const OF_SERVER = ['tools/call', 'resources/read', 'resources/list'];
const OF_HOST = ['ui/message', 'ui/update-model-context', 'ui/open-link', 'ui/request-display-mode'];

export const PRESETS: readonly Preset[] = [
  { name: 'everything', declares: ALL, refuses: [], maxHeight: 5_000, modes: ['inline', 'fullscreen', 'pip'] },
  { name: 'Claude', declares: ALL, refuses: [], maxHeight: 5_000, modes: ['inline', 'fullscreen'] },
  {
    name: 'ChatGPT',
    declares: ALL,
    refuses: ['resources/list'],
    height: 695,
    modes: ['inline', 'fullscreen', 'pip'],
  },
  {
    name: 'Goose',
    declares: ['openLinks', 'logging'],
    refuses: ['resources/read', 'resources/list', 'ui/message', 'ui/update-model-context'],
    maxHeight: 5_000,
    modes: ['inline'],
  },
  { name: 'Cursor', declares: ALL, refuses: [], listedOnly: true, maxHeight: 5_000, modes: ['inline'] },
  { name: 'none', declares: [], refuses: [...OF_SERVER, ...OF_HOST], modes: ['inline'] },
];
