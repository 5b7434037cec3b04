/** Lists what a person decides here: the questions to this page and, at the machine of the server, approvals and deliveries to send again. */
import { Approvals } from './Approvals.tsx';
import { Deliveries } from './Deliveries.tsx';
import { OwnQuestions } from './OwnQuestions.tsx';

export function Decisions({ remote }: { readonly remote: boolean }) {
  return (
    <>
      {remote ? null : <Approvals />}
      <OwnQuestions />
      {remote ? null : <Deliveries />}
    </>
  );
}
