/** The script that a gateway puts before the scripts of an upstream's page. It leaves no trace in the document. */
import type { PageNames } from '../../../src/gateway/mounts/page-names.ts';
import { translateFrame } from '../mounted/frame.ts';
import { Messages } from '../mounted/messages.ts';

const script = document.currentScript;
if (script) {
  const names: PageNames = JSON.parse(script.dataset.names ?? '');
  script.remove();
  translateFrame(new Messages(names));
}
