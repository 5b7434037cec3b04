/** The icons of the page: one line drawing for each kind of actor and for each action. */
import type { ComponentChildren, JSX } from 'preact';
import type { ActorKind } from '../../../src/inspector/frames.ts';

const PATHS = {
  server: 'M8 1.8 14.2 8 8 14.2 1.8 8Z',
  session: 'M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3',
  requests: 'M3 4h10M3 8h10M3 12h6',
  registry: 'M3 3h10v10H3zM3 6.3h10M6.3 6.3V13',
  executor: 'M5 3.2 12.6 8 5 12.8Z',
  emitter: 'M8 13V4M4.5 7.5 8 4l3.5 3.5M3.5 2h9',
  request: 'M2.5 8h10M8.8 4.3 12.5 8l-3.7 3.7',
  ask: 'M5.6 5.9a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.2.9-1.2 1.7M8 12.4v.2',
  machine: 'M2.5 3h4.5v4H2.5zM9 9h4.5v4H9zM7 5h4.2v4',
  handle: 'M8 2.2 13 5v6l-5 2.8L3 11V5zM3 5l5 2.8L13 5M8 7.8v6',
  invoked: 'M2.5 8a3.5 3.5 0 0 1 3.5-3.5h7M10 1.8l3 2.7-3 2.7M13.5 11.5H6',
  subscriptions: 'M4 11V7a4 4 0 0 1 8 0v4l1 1.2H3zM6.8 14h2.4',
  task: 'M3 3h10v10H3zM5.5 8.2l1.8 1.8 3.4-3.8',
  client: 'M2.5 3.5h11v7h-11zM5 13h6M8 5v4M6 7l2 2 2-2',
  mount: 'M3 6h10v7H3zM5.5 6V3h5v3',
  audit: 'M3.5 2.5h9v11h-9zM5.8 6h4.4M5.8 8.5h4.4M5.8 11h2.4',
  approval: 'M3 8.5 6.5 12 13 4',
  schedule: 'M3 4h10v9H3zM3 7h10',
  webhook: 'M3 8h8M8 5l3 3-3 3M13 3v10',
  run: 'M6 4 2.5 8 6 12M10 4l3.5 4-3.5 4',
  state: 'M3 3.5h10v3H3zM3 6.5h10v3H3zM3 9.5h10v3H3zM5 5h2M5 8h2M5 11h2',
  group: 'M2.5 4.5h4l1.2 1.5h5.8v6.5h-11z',
  exchange: 'M2.5 5.5h9M9 3l2.5 2.5L9 8M13.5 10.5h-9M7 8l-2.5 2.5L7 13',
  back: 'M10 3.5 5.5 8 10 12.5',
  forth: 'M6 3.5 10.5 8 6 12.5',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.2 12.6 8 5 12.8Z',
  out: 'M8 2.5v7.5M4.8 7 8 10l3.2-3M3 13h10',
  theme: 'M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11',
  help: 'M5.6 5.9a2.5 2.5 0 1 1 3.6 2.3c-.8.4-1.2.9-1.2 1.7M8 12.4v.2',
  mark: 'M4.5 2.5h7v11L8 10.7l-3.5 2.8z',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3l3.2 3.2',
  close: 'M4 4l8 8M12 4l-8 8',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  copy: 'M5.5 5.5h7v7h-7zM3.5 10.5v-7h7',
  in: 'M13 8H4M7.2 4.8 4 8l3.2 3.2',
  outward: 'M3 8h9M8.8 4.8 12 8l-3.2 3.2',
  both: 'M2.5 5.5h9M9 3l2.5 2.5L9 8M13.5 10.5h-9M7 8l-2.5 2.5L7 13',
  clock: 'M8 13.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11ZM8 5v3.2l2 1.3',
  send: 'M2.5 8 13.5 3l-3 10-2.5-4zM8 9l5.5-6',
  stop: 'M4 4h8v8H4z',
  'pane-left': 'M2.5 3h11v10h-11zM6 3v10',
  'pane-right': 'M2.5 3h11v10h-11zM10 3v10',
  'pane-bottom': 'M2.5 3h11v10h-11zM2.5 9.5h11',
} as const;

export type IconName = keyof typeof PATHS | ActorKind;

/** A drawing next to text. It is decorative unless `title` is set. */
export function Icon({ name, size = 16, title }: { name: IconName; size?: number; title?: string }) {
  const drawing = (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
  return title === undefined ? drawing : <Titled title={title}>{drawing}</Titled>;
}

export type Shape =
  | 'here'
  | 'waiting'
  | 'asleep'
  | 'gone'
  | 'trouble'
  | 'open'
  | 'ok'
  | 'failed'
  | 'cancelled'
  | 'asked';

/** A state as a shape: a disc is live, a clock waits, a cross is ended, a triangle is a problem. */
export function Sign({ shape, title }: { shape: Shape; title?: string }) {
  const drawing = (
    <svg class={`sign ${shape}`} width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
      {SHAPES[shape]}
    </svg>
  );
  return title === undefined ? drawing : <Titled title={title}>{drawing}</Titled>;
}

function Titled({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <span class="titled" role="img" aria-label={title}>
      {children}
    </span>
  );
}

const SHAPES: { readonly [shape in Shape]: JSX.Element } = {
  here: <circle cx="6" cy="6" r="3.2" class="solid" />,
  waiting: <path d="M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM6 3.6V6l1.7 1.1" />,
  open: <path d="M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM6 3.6V6l1.7 1.1" />,
  asleep: <path d="M9.6 7.4A4 4 0 1 1 5.2 2.2a3.2 3.2 0 0 0 4.4 5.2Z" />,
  gone: <path d="M3 3l6 6M9 3 3 9" />,
  trouble: <path d="M6 1.8 10.8 10H1.2ZM6 5v2.2M6 8.6v.1" />,
  failed: <path d="M6 1.8 10.8 10H1.2ZM6 5v2.2M6 8.6v.1" />,
  ok: <path d="M2.5 6.3 5 8.8l4.5-5.3" />,
  cancelled: <path d="M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM3.2 3.2l5.6 5.6" />,
  asked: <path d="M4 4.5a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.3M6 9.4v.2" />,
};
