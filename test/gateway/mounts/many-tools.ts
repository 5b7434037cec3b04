/** Two hundred tools of fourteen servers, as people mount them, and queries of models with the tool that each means. */
import type { Tool } from '../../../src/core/protocol/types.ts';

/** Descriptions of parameters that many tools have. */
const ABOUT: Readonly<Record<string, string>> = {
  owner: 'The account owner of the repository. The name is not case sensitive.',
  repo: 'The name of the repository without the .git extension.',
  page: 'Page number for pagination, starting at 1.',
  perPage: 'Results per page for pagination (at least 1, at most 100).',
  path: 'Absolute path of the file or directory. It must be inside one of the allowed directories.',
  limit: 'The maximum number of results to return. Defaults to 50.',
  cursor: 'An opaque cursor from the previous page. Leave it out for the first page.',
  channel: 'The identifier of the channel, such as C0123456789.',
  issue_number: 'The number that identifies the issue.',
  pullNumber: 'The number that identifies the pull request.',
  issueKey: 'The key of the issue, such as PROJ-123.',
  customer: 'The identifier of the customer, such as cus_123.',
  namespace: 'The namespace of the resource. Defaults to the current namespace of the context.',
  element: 'A human-readable description of the element, used to ask for permission to interact with it.',
  ref: 'The exact reference of the target element from the page snapshot.',
  calendarId: 'The identifier of the calendar. Use "primary" for the calendar of the signed-in user.',
  page_id: 'The identifier of the page, a UUID with or without dashes.',
  bucket: 'The name of the bucket.',
  organizationSlug: 'The slug of the organization, as it appears in addresses.',
  query: 'The query, in the syntax of the service.',
};

/** server: then one tool a line: name | parameters, `?` optional, `[]` a list, `=a/b` an enumeration, `#` an integer | description */
const TOOLS: Readonly<Record<string, string>> = {
  github: `
create_or_update_file | owner, repo, path, content, message, branch, sha? | Create or update a single file in a GitHub repository. If updating, you must provide the SHA of the file you want to update.
search_repositories | query, page#?, perPage#? | Find GitHub repositories by name, description, readme, topics, or other metadata. Perfect for discovering projects or finding examples.
create_repository | name, description?, private?, autoInit? | Create a new GitHub repository in your account or a specified organization.
get_file_contents | owner, repo, path, ref? | Get the contents of a file or directory from a GitHub repository.
push_files | owner, repo, branch, files[], message | Push multiple files to a GitHub repository in a single commit.
create_issue | owner, repo, title, body?, assignees[]?, labels[]?, milestone#? | Create a new issue in a GitHub repository with an optional body, labels and assignees.
create_pull_request | owner, repo, title, body?, head, base, draft? | Create a new pull request in a GitHub repository.
fork_repository | owner, repo, organization? | Fork a GitHub repository to your account or a specified organization.
create_branch | owner, repo, branch, from_branch? | Create a new branch in a GitHub repository.
list_branches | owner, repo, page#?, perPage#? | List the branches of a GitHub repository.
list_commits | owner, repo, sha?, author?, page#?, perPage#? | Get the list of commits of a branch in a GitHub repository, newest first.
get_commit | owner, repo, sha | Get details for a commit from a GitHub repository, with its diff and changed files.
list_issues | owner, repo, state=open/closed/all?, labels[]?, since?, page#? | List issues in a GitHub repository with filtering options such as state, labels and date.
update_issue | owner, repo, issue_number#, title?, body?, state=open/closed?, labels[]? | Update an existing issue in a GitHub repository, for example close or reopen it.
add_issue_comment | owner, repo, issue_number#, body | Add a comment to an existing issue.
get_issue | owner, repo, issue_number# | Get details of a specific issue in a GitHub repository.
search_code | query, page#?, perPage#? | Fast and precise code search across all GitHub repositories using GitHub's native search engine.
search_issues | query, sort?, order=asc/desc?, page#? | Search for issues and pull requests across GitHub repositories using issues search syntax.
search_users | query, sort=followers/repositories/joined?, page#? | Find GitHub users by username, real name, or other profile information.
get_pull_request | owner, repo, pullNumber# | Get details of a specific pull request.
list_pull_requests | owner, repo, state=open/closed/all?, head?, base?, page#? | List pull requests in a GitHub repository.
merge_pull_request | owner, repo, pullNumber#, commit_title?, merge_method=merge/squash/rebase? | Merge a pull request in a GitHub repository.
get_pull_request_diff | owner, repo, pullNumber# | Get the diff of a pull request.
create_pull_request_review | owner, repo, pullNumber#, body, event=APPROVE/REQUEST_CHANGES/COMMENT, comments[]? | Create a review on a pull request: approve it, request changes or comment.
update_pull_request_branch | owner, repo, pullNumber# | Update the branch of a pull request with the latest changes from its base branch.
list_workflow_runs | owner, repo, workflow_id, status?, page#? | List the runs of a GitHub Actions workflow.
rerun_workflow_run | owner, repo, run_id# | Re-run an entire workflow run of GitHub Actions.
get_job_logs | owner, repo, job_id#, tail_lines#? | Download the logs of a specific workflow job, or of all failed jobs of a run.
list_releases | owner, repo, page#? | List the releases of a GitHub repository.
list_notifications | filter?, since?, page#? | List all GitHub notifications for the authenticated user, including unread ones, mentions and review requests.`,
  fs: `
read_text_file | path, head#?, tail#? | Read the complete contents of a file from the file system as text. Handles various text encodings. Use head or tail to read only the first or last lines.
read_media_file | path | Read an image or audio file. Returns the base64 encoded data and the MIME type.
read_multiple_files | paths[] | Read the contents of multiple files simultaneously. More efficient than reading files one by one.
write_file | path, content | Create a new file or completely overwrite an existing file with new content. Use with caution.
edit_file | path, edits[], dryRun? | Make line-based edits to a text file. Each edit replaces exact line sequences with new content. Returns a git-style diff.
create_directory | path | Create a new directory or ensure that a directory exists. Can create multiple nested directories.
list_directory | path | Get a detailed listing of all files and directories in a specified path.
directory_tree | path, excludePatterns[]? | Get a recursive tree view of files and directories as a JSON structure.
move_file | source, destination | Move or rename files and directories. If the destination exists, the operation fails.
search_files | path, pattern, excludePatterns[]? | Recursively search for files and directories matching a glob pattern.
get_file_info | path | Retrieve detailed metadata about a file or directory: size, creation time, last modified time, permissions.
list_allowed_directories | | Returns the list of directories that this server is allowed to access.`,
  slack: `
conversations_history | channel, limit?, cursor?, oldest?, latest? | Get messages from the channel or direct message, newest first.
conversations_replies | channel, thread_ts, limit?, cursor? | Get a thread of messages posted to a conversation.
post_message | channel, text, thread_ts?, unfurl_links? | Post a new message to a Slack channel or direct message.
schedule_message | channel, text, post_at# | Schedule a message to be sent to a channel at a later time.
update_message | channel, ts, text | Edit the text of a message that was posted before.
delete_message | channel, ts | Delete a message from a channel.
add_reaction | channel, timestamp, name | Add an emoji reaction to a message.
list_channels | types=public/private/im/mpim?, limit?, cursor? | List the channels of the workspace with their topics and member counts.
create_channel | name, is_private? | Create a public or private channel.
invite_to_channel | channel, users[] | Invite one or more people to a channel.
search_messages | query, from_user?, in_channel?, before?, after? | Search messages in all channels by text, author, channel and date.
get_users | limit?, cursor? | Get a list of all users in the workspace with their basic profile information.
get_user_profile | user_id | Get detailed profile information for a specific user: title, phone, status and time zone.
upload_file | channels[], filename, content, initial_comment? | Upload a file and share it in channels.
set_status | status_text, status_emoji?, expiration#? | Set the status of the signed-in user, such as "in a meeting".`,
  jira: `
get_issue | issueKey, fields[]?, expand? | Get the details of a Jira issue, including its description, status, links and comments.
search_issues | jql, fields[]?, startAt#?, maxResults#? | Search Jira issues using JQL (Jira Query Language).
create_issue | projectKey, summary, issueType, description?, assignee?, priority? | Create a new Jira issue with an optional epic link or parent.
update_issue | issueKey, fields{} | Update the fields of an existing Jira issue.
delete_issue | issueKey | Delete an existing Jira issue.
transition_issue | issueKey, transitionId, comment? | Move a Jira issue to a new status of its workflow, such as Done.
get_transitions | issueKey | Get the status transitions that are available for a Jira issue.
add_comment | issueKey, comment | Add a comment to a Jira issue.
add_worklog | issueKey, timeSpent, comment?, started? | Log the time that was spent working on a Jira issue.
link_issues | linkType, inwardIssueKey, outwardIssueKey | Create a link between two Jira issues, such as "blocks".
assign_issue | issueKey, accountId | Assign a Jira issue to a user.
get_agile_boards | name?, projectKey?, type=scrum/kanban? | Get the agile boards by name, project or type.
get_sprints_from_board | boardId, state=active/future/closed? | Get the sprints of an agile board by their state.
get_sprint_issues | sprintId, fields[]? | Get the issues of a sprint.
create_sprint | boardId, name, startDate?, endDate?, goal? | Create a sprint for an agile board.
get_all_projects | includeArchived? | List all Jira projects that the user can see.`,
  postgres: `
execute_sql | sql | Execute a SQL query or statement against the PostgreSQL database.
list_schemas | | List all schemas in the database.
list_objects | schema_name, object_type=table/view/sequence/extension? | List the objects of a schema, such as tables and views.
get_object_details | schema_name, object_name | Show the columns, constraints and indexes of a database table.
explain_query | sql, analyze?, hypothetical_indexes[]? | Explain the execution plan of a SQL query with its cost estimates, to see how it will be run.
analyze_workload_indexes | max_index_size_mb#? | Analyze frequently executed queries in the database and recommend optimal indexes.
get_top_queries | sort_by=total_time/mean_time?, limit#? | Report the slowest or most resource-intensive SQL queries from statistics.
analyze_db_health | health_type? | Analyze the health of the database: cache hit rates, dead tuples, unused indexes, replication lag, connections.`,
  stripe: `
create_customer | name, email? | Create a customer in Stripe.
list_customers | limit#?, email? | Fetch a list of customers from Stripe.
create_product | name, description? | Create a product in Stripe.
list_products | limit#? | Fetch a list of products from Stripe.
create_price | product, unit_amount#, currency, recurring? | Create a price for a product, one-time or recurring.
list_prices | product?, limit#? | Fetch a list of prices from Stripe.
create_payment_link | price, quantity#, redirect_url? | Create a payment link that can be shared with a buyer.
create_invoice | customer, days_until_due#? | Create an invoice for a customer.
create_invoice_item | customer, price, invoice | Add an item (a line) to an invoice.
finalize_invoice | invoice | Finalize an invoice, so that it can be paid.
list_invoices | customer?, limit#? | Fetch a list of invoices from Stripe.
retrieve_balance | | Retrieve the balance of the Stripe account.
create_refund | payment_intent, amount#?, reason=duplicate/fraudulent/requested_by_customer? | Refund a payment, in full or in part.
list_payment_intents | customer?, limit#? | Fetch a list of payment intents from Stripe.
list_subscriptions | customer?, price?, status?, limit#? | Fetch a list of subscriptions from Stripe.
cancel_subscription | subscription | Cancel a subscription of a customer.
update_subscription | subscription, items[]?, proration_behavior? | Change a subscription: its items, quantities or proration.
list_disputes | charge?, payment_intent?, limit#? | Fetch a list of disputes (chargebacks).
create_coupon | name, percent_off#?, amount_off#?, duration? | Create a discount coupon.`,
  gmail: `
send_email | to[], subject, body, cc[]?, bcc[]?, attachments[]? | Send a new email.
draft_email | to[], subject, body, cc[]?, bcc[]? | Write a draft of an email without sending it.
read_email | messageId | Retrieve the content of a specific email.
search_emails | query, maxResults#? | Search for emails using Gmail search syntax.
modify_email | messageId, addLabelIds[]?, removeLabelIds[]? | Modify the labels of an email: archive it, star it, or move it to another folder.
delete_email | messageId | Permanently delete an email.
list_email_labels | | Retrieve all available Gmail labels.
create_label | name, labelListVisibility? | Create a new Gmail label.
batch_delete_emails | messageIds[], batchSize#? | Permanently delete multiple emails in batches.
download_attachment | messageId, attachmentId, savePath? | Download an attachment of an email to a specified location.
create_filter | criteria{}, action{} | Create a Gmail filter that applies actions to incoming mail that fits the criteria.
set_vacation_responder | enabled, subject?, body?, startTime?, endTime? | Turn the automatic out-of-office reply on or off.`,
  calendar: `
list_calendars | | List all calendars of the user.
list_events | calendarId, timeMin?, timeMax?, timeZone? | List the events of one or more calendars in a range of time.
search_events | calendarId, query, timeMin?, timeMax? | Search for events in a calendar by text.
get_event | calendarId, eventId | Get the details of a calendar event.
create_event | calendarId, summary, start, end, description?, location?, attendees[]?, recurrence? | Create a calendar event with optional attendees, location and recurrence.
update_event | calendarId, eventId, summary?, start?, end?, attendees[]? | Change an existing calendar event, for example move it to another time.
delete_event | calendarId, eventId | Delete a calendar event.
get_freebusy | calendars[], timeMin, timeMax | Query free and busy times of calendars, to find when people are available.
respond_to_event | calendarId, eventId, response=accepted/declined/tentative | Respond to an invitation: accept or decline it.
get_current_time | timeZone? | Get the current date and time.`,
  notion: `
search | query, filter?, sort?, page_size#? | Search pages and databases in the workspace by title.
fetch_page | page_id | Retrieve a Notion page with its content as Markdown.
create_page | parent, properties{}, children[]? | Create a page in Notion below another page or in a database.
update_page | page_id, properties{} | Update the properties of a Notion page.
append_block_children | block_id, children[] | Append content blocks to the end of a page or block.
delete_block | block_id | Move a block or a page to the trash.
query_database | database_id, filter?, sorts[]?, page_size#? | Query the rows of a Notion database with filters and sorts.
create_database | parent, title, properties{} | Create a database as a child of a page, with the columns that the properties define.
update_database | database_id, title?, properties{} | Change the title or the columns of a database.
create_comment | page_id, rich_text[] | Add a comment to a page or a discussion.
list_comments | block_id | Retrieve the unresolved comments of a page or block.
move_page | page_id, new_parent | Move a page below another parent.
get_users | | List the members of the workspace.`,
  browser: `
navigate | url | Navigate to a URL in the browser.
navigate_back | | Go back to the previous page.
snapshot | | Capture the accessibility snapshot of the current page. This is better than a screenshot for interaction.
take_screenshot | filename?, fullPage?, type=png/jpeg? | Take a screenshot of the current page. You cannot perform actions based on the screenshot.
click | element, ref, doubleClick?, button=left/right/middle? | Perform a click on a web page element.
type | element, ref, text, submit?, slowly? | Type text into an editable element.
fill_form | fields[] | Fill multiple fields of a form at once.
hover | element, ref | Hover over an element on the page.
drag | startElement, startRef, endElement, endRef | Perform drag and drop between two elements.
select_option | element, ref, values[] | Select an option in a dropdown.
press_key | key | Press a key on the keyboard, such as Enter or ArrowLeft.
file_upload | paths[] | Upload one or multiple files to a file chooser on the page.
handle_dialog | accept, promptText? | Accept or dismiss a dialog such as an alert or a prompt.
evaluate | function, element?, ref? | Evaluate a JavaScript expression on the page or on an element.
console_messages | onlyErrors? | Returns all console messages of the page.
network_requests | includeStatic? | Returns all network requests since the page was loaded.
wait_for | time#?, text?, textGone? | Wait for text to appear or disappear, or for a time to pass.
resize | width#, height# | Resize the browser window.
tabs | action=list/new/close/select, index#? | List, create, close or select a browser tab.
pdf_save | filename? | Save the page as a PDF.`,
  sentry: `
find_organizations | | Find the organizations that the user can access in Sentry.
find_projects | organizationSlug | Find the projects of an organization in Sentry.
find_teams | organizationSlug | Find the teams of an organization in Sentry.
search_issues | organizationSlug, naturalLanguageQuery, projectSlug?, limit#? | Search grouped problems (issues) in Sentry, such as unresolved crashes of production.
get_issue_details | organizationSlug, issueId | Get the stack trace, tags and frequency of an error that Sentry has recorded.
search_events | organizationSlug, naturalLanguageQuery, projectSlug? | Count and aggregate events: error rates, slow transactions, spans, token usage.
update_issue | organizationSlug, issueId, status=resolved/ignored/unresolved?, assignedTo? | Resolve, ignore or assign an issue in Sentry.
analyze_issue_with_seer | organizationSlug, issueId | Analyze the root cause of an issue with AI and propose a fix in code.
create_project | organizationSlug, teamSlug, name, platform? | Create a project in Sentry and return its DSN.
find_dsns | organizationSlug, projectSlug | List the DSNs (client keys) of a project.
find_releases | organizationSlug, projectSlug?, query? | Find releases with their versions and dates of deployment.`,
  aws: `
s3_list_buckets | | List the S3 buckets of the account.
s3_list_objects | bucket, prefix?, maxKeys#? | List the objects of an S3 bucket.
s3_get_object | bucket, key | Download an object from an S3 bucket.
s3_put_object | bucket, key, content, contentType? | Upload an object to an S3 bucket.
s3_delete_object | bucket, key | Delete an object from an S3 bucket.
ec2_describe_instances | instanceIds[]?, filters[]? | Describe EC2 instances (virtual machines) with their state and addresses.
ec2_start_instances | instanceIds[] | Start stopped EC2 instances.
ec2_stop_instances | instanceIds[] | Stop running EC2 instances.
lambda_invoke | functionName, payload?, invocationType? | Invoke a Lambda function with a payload.
lambda_list_functions | maxItems#? | List the Lambda functions of the region.
cloudwatch_get_metric_data | namespace, metricName, startTime, endTime, statistic? | Get the values of a CloudWatch metric over time.
cloudwatch_query_logs | logGroup, query, startTime, endTime | Run a query of CloudWatch Logs Insights over a log group.
dynamodb_query | tableName, keyCondition, limit#? | Query the items of a DynamoDB table by their key.
dynamodb_put_item | tableName, item{} | Write an item to a DynamoDB table.
get_cost_and_usage | startDate, endDate, granularity=DAILY/MONTHLY?, groupBy? | Report the costs of the account by service and day, from Cost Explorer.`,
  kubernetes: `
pods_list | namespace?, labelSelector? | List the Kubernetes pods of the current cluster, in all namespaces or in one.
pods_get | name, namespace? | Get a Kubernetes pod by its name.
pods_log | name, namespace?, container?, tail#?, previous? | Get the logs of a Kubernetes pod.
pods_exec | name, command[], namespace?, container? | Execute a command in the container of a Kubernetes pod.
pods_delete | name, namespace? | Delete a Kubernetes pod.
pods_run | image, name?, namespace?, port#? | Run a Kubernetes pod with a container image.
pods_top | namespace?, name? | Show the CPU and memory consumption of Kubernetes pods.
resources_list | apiVersion, kind, namespace?, labelSelector? | List Kubernetes resources of a kind, such as deployments, services or ingresses.
resources_create_or_update | resource | Apply a Kubernetes manifest in YAML or JSON.
resources_scale | kind, name, replicas#, namespace? | Scale a deployment or a stateful set to a number of replicas.
events_list | namespace? | List the Kubernetes events of the cluster, such as failed scheduling and image pull errors.
namespaces_list | | List the Kubernetes namespaces of the cluster.
helm_install | chart, name?, namespace?, values{}? | Install a Helm chart in the cluster.
helm_list | namespace?, allNamespaces? | List the Helm releases.
helm_uninstall | name, namespace? | Uninstall a Helm release.`,
  memory: `
create_entities | entities[] | Create multiple new entities in the knowledge graph.
create_relations | relations[] | Create multiple new relations between entities in the knowledge graph. Relations are in active voice.
add_observations | observations[] | Add new observations (facts) to existing entities in the knowledge graph.
delete_entities | entityNames[] | Delete multiple entities and their relations from the knowledge graph.
read_graph | | Read the entire knowledge graph.
search_nodes | query | Search for nodes in the knowledge graph by a query, to remember what was stored about a subject.
open_nodes | names[] | Open specific nodes in the knowledge graph by their names.
get_weather_forecast | latitude, longitude, days#? | Get the weather forecast for a place: temperature, rain and wind.
geocode | address | Convert an address into coordinates (latitude and longitude).
get_directions | origin, destination, mode=driving/walking/bicycling/transit? | Get directions and the travel time between two places.
convert_currency | amount, from, to | Convert an amount of money from one currency to another by the exchange rate of today.`,
};

function parameter(text: string): [name: string, schema: Tool['inputSchema'], required: boolean] {
  const [, name = '', list, object, whole, values, optional] =
    /^(\w+)(\[\])?(\{\})?(#)?(?:=([\w/]+))?(\?)?$/.exec(text) ?? [];
  const described = { description: ABOUT[name] ?? `The ${name.replaceAll('_', ' ')} to use.` };
  const type = values
    ? { type: 'string', enum: values.split('/') }
    : { type: object ? 'object' : whole ? 'integer' : 'string' };
  return [
    name,
    list ? { type: 'array', items: { type: 'string' }, ...described } : { ...type, ...described },
    !optional,
  ];
}

/** The definitions as a mount offers them. */
export const MANY_TOOLS: readonly Tool[] = Object.entries(TOOLS).flatMap(([server, text]) =>
  text
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', list = '', description = ''] = line.split('|').map((part) => part.trim());
      const parameters = list === '' ? [] : list.split(', ').map(parameter);
      return {
        name: `${server}_${name}`,
        description,
        inputSchema: {
          type: 'object',
          properties: Object.fromEntries(parameters.map(([key, schema]) => [key, schema])),
          required: parameters.flatMap(([key, , required]) => (required ? [key] : [])),
        },
      };
    }),
);

/** A query as a model words it, and the tool that it needs. */
export const QUERIES: readonly (readonly [query: string, tool: string])[] = [
  ['open an issue on github', 'github_create_issue'],
  ['report a bug in a repository', 'github_create_issue'],
  ['comment on a github issue', 'github_add_issue_comment'],
  ['close a github issue', 'github_update_issue'],
  ['which pull requests are open', 'github_list_pull_requests'],
  ['merge a PR', 'github_merge_pull_request'],
  ['approve a pull request', 'github_create_pull_request_review'],
  ['show what a pull request changes', 'github_get_pull_request_diff'],
  ['search source code for a function', 'github_search_code'],
  ['commit several files at once', 'github_push_files'],
  ['history of commits', 'github_list_commits'],
  ['make a new branch', 'github_create_branch'],
  ['logs of a failed CI job', 'github_get_job_logs'],
  ['rerun the CI workflow', 'github_rerun_workflow_run'],
  ['find a github user by name', 'github_search_users'],
  ['read a local file', 'fs_read_text_file'],
  ['rename a file', 'fs_move_file'],
  ['make a folder', 'fs_create_directory'],
  ['size and modification date of a file', 'fs_get_file_info'],
  ['find files by glob pattern', 'fs_search_files'],
  ['replace lines in a text file', 'fs_edit_file'],
  ['send a message to a slack channel', 'slack_post_message'],
  ['read the latest messages of a channel', 'slack_conversations_history'],
  ['replies of a thread', 'slack_conversations_replies'],
  ['react with an emoji', 'slack_add_reaction'],
  ['send a slack message tomorrow morning', 'slack_schedule_message'],
  ['add people to a channel', 'slack_invite_to_channel'],
  ['find jira tickets with JQL', 'jira_search_issues'],
  ['move a ticket to done', 'jira_transition_issue'],
  ['log time on a ticket', 'jira_add_worklog'],
  ['tickets of the current sprint', 'jira_get_sprint_issues'],
  ['assign a jira ticket to somebody', 'jira_assign_issue'],
  ['run a SQL query', 'postgres_execute_sql'],
  ['columns of a database table', 'postgres_get_object_details'],
  ['slowest queries of the database', 'postgres_get_top_queries'],
  ['which indexes should be added', 'postgres_analyze_workload_indexes'],
  ['refund a customer', 'stripe_create_refund'],
  ['cancel a subscription', 'stripe_cancel_subscription'],
  ['bill a customer', 'stripe_create_invoice'],
  ['link for a buyer to pay', 'stripe_create_payment_link'],
  ['how much money is in the stripe account', 'stripe_retrieve_balance'],
  ['send an e-mail', 'gmail_send_email'],
  ['find mails from a person', 'gmail_search_emails'],
  ['archive a mail', 'gmail_modify_email'],
  ['save the attachment of a mail', 'gmail_download_attachment'],
  ['out of office reply', 'gmail_set_vacation_responder'],
  ['schedule a meeting', 'calendar_create_event'],
  ['when are people free', 'calendar_get_freebusy'],
  ['move a meeting to another time', 'calendar_update_event'],
  ['decline an invitation', 'calendar_respond_to_event'],
  ['what is on my calendar today', 'calendar_list_events'],
  ['what time is it', 'calendar_get_current_time'],
  ['read a notion page', 'notion_fetch_page'],
  ['add text to the end of a page', 'notion_append_block_children'],
  ['rows of a notion database', 'notion_query_database'],
  ['open a website', 'browser_navigate'],
  ['click a button on the page', 'browser_click'],
  ['picture of the web page', 'browser_take_screenshot'],
  ['run javascript in the page', 'browser_evaluate'],
  ['fill in a form', 'browser_fill_form'],
  ['stack trace of an error in production', 'sentry_get_issue_details'],
  ['mark a sentry issue as resolved', 'sentry_update_issue'],
  ['upload a file to s3', 'aws_s3_put_object'],
  ['which virtual machines are running', 'aws_ec2_describe_instances'],
  ['what did we spend on aws last month', 'aws_get_cost_and_usage'],
  ['call a lambda function', 'aws_lambda_invoke'],
  ['logs of a pod', 'kubernetes_pods_log'],
  ['scale a deployment', 'kubernetes_resources_scale'],
  ['apply a yaml manifest', 'kubernetes_resources_create_or_update'],
  ['memory usage of pods', 'kubernetes_pods_top'],
  ['install a helm chart', 'kubernetes_helm_install'],
  ['remember a fact about a person', 'memory_add_observations'],
  ['will it rain tomorrow', 'memory_get_weather_forecast'],
  ['how long is the drive from Berlin to Hamburg', 'memory_get_directions'],
  ['dollars in euros', 'memory_convert_currency'],
  // Written after the ranking was tuned with those above.
  ['fork a repo', 'github_fork_repository'],
  ['latest releases of a project on github', 'github_list_releases'],
  ['unread github notifications', 'github_list_notifications'],
  ['request changes on a PR', 'github_create_pull_request_review'],
  ['delete a slack message', 'slack_delete_message'],
  ['phone number and time zone of a colleague in slack', 'slack_get_user_profile'],
  ['share a file in a slack channel', 'slack_upload_file'],
  ['list the contents of a directory', 'fs_list_directory'],
  ['overwrite a file', 'fs_write_file'],
  ['start a new sprint', 'jira_create_sprint'],
  ['one ticket blocks another', 'jira_link_issues'],
  ['why is this query slow', 'postgres_explain_query'],
  ['tables in a schema', 'postgres_list_objects'],
  ['chargebacks', 'stripe_list_disputes'],
  ['discount code', 'stripe_create_coupon'],
  ['unpaid invoices of a customer', 'stripe_list_invoices'],
  ['write a draft reply', 'gmail_draft_email'],
  ['remove an appointment', 'calendar_delete_event'],
  ['notion comments on a page', 'notion_list_comments'],
  ['upload a document in the browser', 'browser_file_upload'],
  ['javascript errors in the console', 'browser_console_messages'],
  ['save page as pdf', 'browser_pdf_save'],
  ['crashes in production', 'sentry_search_issues'],
  ['shut down ec2 servers', 'aws_ec2_stop_instances'],
  ['restart a pod by deleting it', 'kubernetes_pods_delete'],
  ['run a shell command in a container', 'kubernetes_pods_exec'],
  ['coordinates of an address', 'memory_geocode'],
  ['what do we know about Alice', 'memory_search_nodes'],
  ['query dynamodb', 'aws_dynamodb_query'],
  ['wait until text appears', 'browser_wait_for'],
];
