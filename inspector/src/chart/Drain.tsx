/** A running timer: a bar that empties as a CSS animation, without further rendering. */
import { useState } from 'preact/hooks';
import type { Rect } from '../../../src/features/charts/placed.ts';
import type { ChartProps, RunningDelay } from './props.ts';

interface DrainProps extends Rect {
  readonly delay: RunningDelay;
  readonly props: ChartProps;
}

export function Drain({ delay, props, ...box }: DrainProps) {
  const { now, running = true } = props;
  // An animation starts when its element is created: a different timer, or one in another position, needs a new bar.
  const key = running ? `${delay.event} ${delay.due}` : `${delay.event} ${delay.due} ${now}`;
  return <Bar key={key} delay={delay} now={now ?? delay.due - delay.lasts} running={running} box={box} />;
}

interface BarProps {
  readonly delay: RunningDelay;
  readonly now: number;
  readonly running: boolean;
  readonly box: Rect;
}

function Bar({ delay: { due, lasts, event }, now, running, box }: BarProps) {
  const [gone] = useState(() => Math.min(lasts, Math.max(0, lasts - (due - now))));
  const { x, y, width, height } = box;
  const radius = height / 2;
  return (
    <g class="drain" transform={`translate(${x} ${y})`} data-event={event}>
      <rect class="drain-track" width={width} height={height} rx={radius} />
      <rect
        class="drain-left"
        width={width}
        height={height}
        rx={radius}
        style={{
          animationDuration: `${Math.max(1, lasts)}ms`,
          animationDelay: `${-gone}ms`,
          animationPlayState: running ? 'running' : 'paused',
        }}
      />
    </g>
  );
}
