/** The page of a machine. */
import type { MachinePage } from '../../../src/features/apps/view-definition.ts';
import { machineView } from '../machine/machine-view.ts';
import { openPage } from '../parts/page.ts';
import '../style.css';
import '../machine/machine.css';

void openPage<MachinePage>(machineView);
