/** A view: a page of the server's own. */
import type { Server } from 'troupe';

/** The handshake of a view in a few lines. `troupe/app` does more: themes, sizes, watching. */
const CLOCK = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Clock</title></head>
<body>
<p id="time">The time is not known yet.</p>
<script>
const send = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
addEventListener('message', ({ source, data }) => {
  if (source !== parent) return;
  if (data.id === 1) send({ method: 'ui/notifications/initialized' });
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
}
