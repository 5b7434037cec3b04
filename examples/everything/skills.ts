/** Skills: folders of instructions for a model, each with a SKILL.md and other files. */
import type { Server } from 'troupe';

export function addSkills(server: Server): void {
  // The server listens when the folder has been read.
  void server.skills(new URL('./skills', import.meta.url));
}
