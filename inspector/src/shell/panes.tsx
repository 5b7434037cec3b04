/** The splitters between panes, moved with the pointer or the arrow keys. */
import { signal } from '@preact/signals';
import type { TargetedKeyboardEvent, TargetedPointerEvent } from 'preact';
import { Tool } from '../parts/parts.tsx';
import { recall, remember } from '../store/memory.ts';

const LIMITS = {
  left: { least: 170, most: 520, usual: 284 },
  right: { least: 240, most: 720, usual: 356 },
  bottom: { least: 64, most: 420, usual: 132 },
} as const;

export type Pane = keyof typeof LIMITS;
const PANES: readonly Pane[] = ['left', 'right', 'bottom'];

export const sizes = signal<Readonly<Record<Pane, number>>>(read());

/** On a phone the view has the whole width: the actors lie above it while they are shown, and the detail below it. */
export const NARROW = '(max-width: 700px)';
const narrow = matchMedia(NARROW).matches;

/** The panes that the reader has collapsed. */
export const collapsed = signal<Readonly<Record<Pane, boolean>>>({
  left: recall('collapsed.left') === 'yes' || narrow,
  right: recall('collapsed.right') === 'yes',
  bottom: recall('collapsed.bottom') === 'yes' || narrow,
});

export function toggleCollapsed(pane: Pane): void {
  const next = !collapsed.value[pane];
  collapsed.value = { ...collapsed.value, [pane]: next };
  // A phone has less room than the desk of the same reader.
  if (!narrow) remember(`collapsed.${pane}`, next ? 'yes' : 'no');
}

/** The style of the page: the sizes of the panes. A collapsed pane takes no space. */
export function paneStyle(): Readonly<Record<string, string>> {
  const size = (pane: Pane): string => `${collapsed.value[pane] ? 0 : sizes.value[pane]}px`;
  return { '--left': size('left'), '--right': size('right'), '--bottom': size('bottom') };
}

const NAMES: Readonly<Record<Pane, string>> = { left: 'actors', right: 'details', bottom: 'timeline' };
const HINTS: Readonly<Record<Pane, string>> = { left: '[', right: ']', bottom: '\\' };

/** Collapses and expands the panes. */
export function PaneTools() {
  return (
    <div class="tools" role="toolbar" aria-label="panels">
      {PANES.map((pane) => (
        <Tool
          key={pane}
          icon={`pane-${pane}`}
          label={`${collapsed.value[pane] ? 'Show' : 'Hide'} the ${NAMES[pane]}`}
          hint={HINTS[pane]}
          onClick={() => toggleCollapsed(pane)}
        />
      ))}
    </div>
  );
}

function read(): Readonly<Record<Pane, number>> {
  const size = (pane: Pane): number => clamp(pane, Number(recall(`size.${pane}`) ?? LIMITS[pane].usual));
  return { left: size('left'), right: size('right'), bottom: size('bottom') };
}

function clamp(pane: Pane, size: number): number {
  const { least, most, usual } = LIMITS[pane];
  return Number.isFinite(size) ? Math.round(Math.max(least, Math.min(most, size))) : usual;
}

function resize(pane: Pane, size: number): void {
  const next = clamp(pane, size);
  if (next === sizes.value[pane]) return;
  sizes.value = { ...sizes.value, [pane]: next };
  remember(`size.${pane}`, String(next));
}

export function resetSizes(): void {
  for (const pane of PANES) resize(pane, LIMITS[pane].usual);
}

export function Splitter({ pane, label }: { readonly pane: Pane; readonly label: string }) {
  const upright = pane !== 'bottom';
  const { least, most, usual } = LIMITS[pane];
  if (collapsed.value[pane]) return <div class={`splitter ${pane} off`} />;
  const drag = (event: TargetedPointerEvent<HTMLElement>): void => {
    const edge = event.currentTarget;
    const start = upright ? event.clientX : event.clientY;
    const size = sizes.value[pane];
    edge.setPointerCapture(event.pointerId);
    event.preventDefault();
    const move = (moved: PointerEvent): void => {
      const by = (upright ? moved.clientX : moved.clientY) - start;
      resize(pane, pane === 'left' ? size + by : size - by);
    };
    const up = (): void => {
      edge.removeEventListener('pointermove', move);
      edge.removeEventListener('pointerup', up);
      edge.removeEventListener('pointercancel', up);
    };
    edge.addEventListener('pointermove', move);
    edge.addEventListener('pointerup', up);
    edge.addEventListener('pointercancel', up);
  };
  const keys = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const grow = pane === 'left' ? 'ArrowRight' : pane === 'right' ? 'ArrowLeft' : 'ArrowUp';
    const shrink = pane === 'left' ? 'ArrowLeft' : pane === 'right' ? 'ArrowRight' : 'ArrowDown';
    if (event.key !== grow && event.key !== shrink) return;
    resize(pane, sizes.value[pane] + (event.key === grow ? 16 : -16));
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a separator that is moved is a widget, which <hr> is not.
    <div
      class={`splitter ${pane}`}
      role="separator"
      tabIndex={0}
      aria-label={label}
      aria-orientation={upright ? 'vertical' : 'horizontal'}
      aria-valuenow={sizes.value[pane]}
      aria-valuemin={least}
      aria-valuemax={most}
      onPointerDown={drag}
      onKeyDown={keys}
      onDblClick={() => resize(pane, usual)}
    />
  );
}
