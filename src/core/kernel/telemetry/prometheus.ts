/** The text of metrics for Prometheus: its own format 0.0.4, and OpenMetrics 1.0.0, which also shows traces. */
import { type Exemplar, Histogram, type Instrument, type Labels, Sum } from './instruments.ts';

/** `prometheus` is the text format 0.0.4, `openmetrics` is OpenMetrics 1.0.0. */
export type MetricsFormat = 'prometheus' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** The format for a scraper. Prometheus names the formats that it reads in `Accept`, the best first. */
export function formatFor(accept: string | undefined): MetricsFormat {
  return accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'prometheus';
}

/** The text of these instruments. An instrument without a time series is left out. */
export function metricsText(instruments: readonly Instrument[], format: MetricsFormat): string {
  const lines: string[] = [];
  for (const instrument of instruments) writeInstrument(instrument, format === 'openmetrics', lines);
  if (format === 'openmetrics') lines.push('# EOF');
  return `${lines.join('\n')}\n`;
}

function writeInstrument(instrument: Instrument, open: boolean, lines: string[]): void {
  const { name, help, unit } = instrument.description;
  const family = `${name.replaceAll('.', '_')}${unit === 's' ? '_seconds' : ''}`;
  if (instrument.type === 'read') {
    head(family, 'gauge', unit, help, open, lines);
    lines.push(`${family} ${instrument.read()}`);
    return;
  }
  if (instrument.labels.length === 0) return;
  const total = instrument.type === 'counter' ? '_total' : '';
  // In the older format the name of a counter ends with "_total", in OpenMetrics only those of its samples do.
  head(open ? family : `${family}${total}`, instrument.type, unit, help, open, lines);
  instrument.labels.forEach((labels, series) => {
    if (instrument instanceof Sum) lines.push(`${family}${total}${shown(labels)} ${instrument.value(series)}`);
    if (instrument instanceof Histogram) writeBuckets(instrument, series, family, labels, open, lines);
  });
}

function head(name: string, type: string, unit: string, help: string, open: boolean, lines: string[]): void {
  lines.push(`# HELP ${name} ${escaped(help)}`, `# TYPE ${name} ${type}`);
  if (open && unit === 's') lines.push(`# UNIT ${name} seconds`);
}

function writeBuckets(
  histogram: Histogram,
  series: number,
  family: string,
  labels: Labels,
  open: boolean,
  lines: string[],
): void {
  const { bounds } = histogram;
  let count = 0;
  for (let bucket = 0; bucket <= bounds.length; bucket += 1) {
    count += histogram.bucket(series, bucket);
    const bound = bounds[bucket];
    const le = bound === undefined ? '+Inf' : decimal(bound);
    const exemplar = open ? traceOf(histogram.exemplar(series, bucket)) : '';
    lines.push(`${family}_bucket${shown({ ...labels, le })} ${count}${exemplar}`);
  }
  lines.push(`${family}_sum${shown(labels)} ${histogram.sum(series)}`, `${family}_count${shown(labels)} ${count}`);
}

/** OpenMetrics wants bounds as canonical floats: 1.0, and not 1. */
function decimal(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function traceOf(exemplar: Readonly<Exemplar> | undefined): string {
  if (!exemplar) return '';
  const { traceId, spanId, value, at } = exemplar;
  return ` # {trace_id="${traceId}",span_id="${spanId}"} ${value} ${at / 1_000}`;
}

function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name.replaceAll('.', '_')}="${escaped(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}
