/** Views: a page of the server's own, and one that is made of the schemas of a tool. */
import type { Server } from 'troupe';
import { z } from 'zod';

/** The handshake of a view in a few lines, with the theme of the host. `troupe/app` does more: languages, sizes, watching. */
const CLOCK = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Clock</title>
<style>body { color-scheme: light dark; color: light-dark(#1b1d21, #f0f1f3); background: light-dark(#fff, #1c1d20); font: 1rem system-ui }</style>
</head>
<body>
<p id="time">The time is not known yet.</p>
<script>
const send = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
const follow = ({ theme }) => {
  if (theme) document.body.style.colorScheme = theme;
};
addEventListener('message', ({ source, data }) => {
  if (source !== parent) return;
  if (data.id === 1) {
    follow(data.result?.hostContext ?? {});
    send({ method: 'ui/notifications/initialized' });
  }
  if (data.method === 'ui/notifications/host-context-changed') follow(data.params);
  if (data.method === 'ui/notifications/tool-result')
    document.getElementById('time').textContent = data.params.structuredContent.time;
});
const params = { protocolVersion: '2026-01-26', appInfo: { name: 'clock', version: '1.0.0' }, appCapabilities: {} };
send({ id: 1, method: 'ui/initialize', params });
</script>
</body>
</html>`;

export function addApps(server: Server): void {
  server.app('clock', { title: 'Clock', html: CLOCK });
  server.tool('show_clock', { description: 'Shows the time, in a view if the host has views.', app: 'clock' }, () => ({
    time: new Date().toISOString(),
  }));
  server.tool('clock_time', { description: 'The time, for the view.', visibleTo: ['app'] }, () => ({
    time: new Date().toISOString(),
  }));

  server.tool(
    'forecast',
    {
      description: 'Invents the weather of some days. Its view is made of its two schemas.',
      app: true,
      input: z.object({ city: z.string(), days: z.number().int().min(1).max(7).default(3) }),
      output: z.object({
        city: z.string(),
        days: z.array(z.object({ day: z.number().int(), degrees: z.number().meta({ title: 'Temperature in °C' }) })),
      }),
    },
    ({ city, days }) => ({ city, days: Array.from({ length: days }, (_, day) => ({ day, degrees: 15 + day })) }),
  );
}
