/** The page of a tool. */
import type { ToolPage } from '../../../src/features/apps/view-definition.ts';
import { openPage } from '../parts/page.ts';
import { toolView } from '../tool/tool-view.ts';
import '../style.css';
import '../tool/tool.css';

void openPage<ToolPage>(toolView);
