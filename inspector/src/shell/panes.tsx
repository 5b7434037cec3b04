/** The splitters between panes, moved with the pointer or the arrow keys. */
import { signal } from '@preact/signals';
import type { TargetedKeyboardEvent, TargetedPointerEvent } from 'preact';
import { recall, remember } from '../store/memory.ts';

const LIMITS = {
  left: { least: 170, most: 520, usual: 284 },
  right: { least: 240, most: 720, usual: 356 },
  bottom: { least: 64, most: 420, usual: 132 },
} as const;

export type Pane = keyof typeof LIMITS;
const PANES: readonly Pane[] = ['left', 'right', 'bottom'];

export const sizes = signal<Readonly<Record<Pane, number>>>(read());

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
