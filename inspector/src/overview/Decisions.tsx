/** Lists what a person decides here: the questions to this page and, at the machine of the server, approvals. */
import { Approvals } from './Approvals.tsx';
import { OwnQuestions } from './OwnQuestions.tsx';

export function Decisions({ remote }: { readonly remote: boolean }) {
  return (
    <>
      {remote ? null : <Approvals />}
      <OwnQuestions />
    </>
  );
}
