/** The status of an exchange: a sign and a word. */
import { statusAt, type WireExchange } from '../../../src/inspector/model/index.ts';
import { type Shape, Sign } from '../parts/icons.tsx';

const SHAPES: Readonly<Record<WireExchange['status'], readonly [Shape, string]>> = {
  open: ['open', 'open'],
  ok: ['ok', 'ok'],
  asked: ['asked', 'asks'],
  isError: ['failed', 'isError'],
  error: ['failed', 'error'],
  cancelled: ['cancelled', 'cancelled'],
};

export function Outcome({ exchange, at }: { readonly exchange: WireExchange; readonly at: number }) {
  const [shape, word] = SHAPES[statusAt(exchange, at)];
  return (
    <span class={`outcome-word ${shape}`}>
      <Sign shape={shape} />
      {word}
    </span>
  );
}
