/** The delays of an instance, each as a bar that drains. Counted from the clock of the server. */
import { element, fill, type Part, section } from '../parts/dom.ts';
import { duration, nameOf } from '../parts/words.ts';
import { type Instance, msOf } from './instance.ts';

const EVERY_MS = 1_000;

export function timersPart(): Part<Instance> {
  const part = section('delays');
  let ticking: ReturnType<typeof setInterval> | undefined;
  return {
    element: part,
    show({ timers = [], now = Date.now(), status }) {
      const ahead = msOf(now) - Date.now();
      const rows = (status === 'active' ? timers : []).map(({ label: delay, at, lasts }) => {
        const name = nameOf('delays', delay);
        const bar = element('progress', { 'aria-label': name, max: lasts });
        const text = element('span');
        return { row: element('div', { class: 'timer' }, name, bar, text), bar, text, end: msOf(at) - ahead };
      });
      const tick = (): void => {
        for (const { bar, text, end } of rows) {
          bar.value = Math.max(0, end - Date.now());
          text.textContent = duration(bar.value / 1000);
        }
      };
      fill(part, ...rows.map(({ row }) => row));
      part.hidden = rows.length === 0;
      clearInterval(ticking);
      tick();
      if (rows.length > 0) ticking = setInterval(tick, EVERY_MS);
    },
  };
}
