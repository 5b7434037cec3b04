/** The data of the message under the pointer. It is requested when the pointer rests. */
import { useEffect, useState } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';

/** Milliseconds for which the pointer rests before the data is shown. */
const REST_MS = 250;
const MOST_LINES = 24;
const MOST_WIDE = 90;

interface Shown {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

interface HoverProps {
  readonly pane: { readonly current: HTMLElement | null };
  readonly data: (seq: number) => Plain | undefined;
}

export function Hover({ pane, data }: HoverProps) {
  const [shown, setShown] = useState<Shown>();
  useEffect(() => {
    const box = pane.current;
    if (box === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let over: string | null = null;
    const hide = (): void => {
      clearTimeout(timer);
      over = null;
      setShown(undefined);
    };
    const move = (event: PointerEvent): void => {
      const row = event.target instanceof Element ? event.target.closest('[data-seq]') : null;
      const seq = row?.getAttribute('data-seq') ?? null;
      if (seq === over) return;
      hide();
      over = seq;
      if (seq === null) return;
      const { left, top, width, height } = box.getBoundingClientRect();
      const x = Math.min(event.clientX - left + 16, width - 360);
      const y = event.clientY - top;
      timer = setTimeout(() => {
        const said = data(Number(seq));
        // Below the pointer in the upper half, above it in the lower.
        if (said !== undefined) setShown({ x, y: y > height / 2 ? y - height : y + 56, text: textOf(said) });
      }, REST_MS);
    };
    box.addEventListener('pointermove', move);
    box.addEventListener('pointerleave', hide);
    box.addEventListener('scroll', hide, { passive: true });
    return () => {
      hide();
      box.removeEventListener('pointermove', move);
      box.removeEventListener('pointerleave', hide);
      box.removeEventListener('scroll', hide);
    };
  }, [data]);
  if (shown === undefined) return null;
  const { x, y, text } = shown;
  return (
    <pre
      class="messages-data"
      style={{ left: `${Math.max(8, x)}px`, ...(y < 0 ? { bottom: `${-y + 12}px` } : { top: `${y}px` }) }}
    >
      {text}
    </pre>
  );
}

function textOf(data: Plain): string {
  const lines = (JSON.stringify(data, null, 2) ?? '').split('\n');
  const shown = lines
    .slice(0, MOST_LINES)
    .map((line) => (line.length > MOST_WIDE ? `${line.slice(0, MOST_WIDE - 1)}…` : line));
  return lines.length > MOST_LINES
    ? `${shown.join('\n')}\n… ${lines.length - MOST_LINES} more lines`
    : shown.join('\n');
}
