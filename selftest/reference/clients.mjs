// Two unmodified JavaScript clients call a service. Standard input is a JSON object with what they need:
// base_url, token, project, group, target (a project for the allowlist), merge_request, sha. The responses are printed as JSON.
import { readFileSync } from "node:fs";
import { Gitlab } from "@gitbeaker/rest";
import createClient from "openapi-fetch";

const order = JSON.parse(readFileSync(0, "utf8"));
const seen = {};

const gitlab = new Gitlab({ host: order.base_url, token: order.token });
const approver = new Gitlab({ host: order.base_url, token: order.approver });
const scope = gitlab.ProjectJobTokenScopes;
seen.scope = await scope.show(order.project);
await scope.edit(order.project, !seen.scope.inboundEnabled && !seen.scope.inbound_enabled);
seen.edited = await scope.show(order.project);
seen.added = await scope.addToInboundAllowList(order.project, order.target);
seen.allowlist = (await scope.showInboundAllowList(order.project)).map((entry) => entry.id);
await scope.removeFromInboundAllowList(order.project, order.target);
seen.left = (await scope.showInboundAllowList(order.project)).map((entry) => entry.id);
seen.rules = await gitlab.MergeRequestApprovals.allApprovalRules(order.project);
seen.approved = await approver.MergeRequestApprovals.approve(order.project, order.merge_request, { sha: order.sha });
seen.state = await gitlab.MergeRequestApprovals.showApprovalState(order.project, order.merge_request);
await approver.MergeRequestApprovals.unapprove(order.project, order.merge_request);
seen.integration = await gitlab.Integrations.edit(order.project, "slack", { webhook: "https://chat.example.com/hook" });
seen.integrations = (await gitlab.Integrations.all(order.project)).map((entry) => entry.slug);
await gitlab.Integrations.disable(order.project, "slack");
seen.scheduled = await new Gitlab({ host: order.base_url, token: order.owner }).GroupRelationExports.scheduleExport(
  order.group,
);

const fetching = createClient({
  baseUrl: `${order.base_url}/api/v4`,
  headers: { "PRIVATE-TOKEN": order.token },
});
const path = { id: order.project };
seen.fetched = (await fetching.GET("/projects/{id}/job_token_scope", { params: { path } })).data;
seen.patched = (
  await fetching.PATCH("/projects/{id}/job_token_scope", { params: { path }, body: { enabled: true } })
).response.status;
seen.refused = (await fetching.GET("/projects/{id}/job_token_scope", { params: { path: { id: "no/such" } } })).error;
seen.page = (
  await fetching.GET("/projects/{id}/approval_rules", { params: { path, query: { page: 1, per_page: 2 } } })
).data;

process.stdout.write(JSON.stringify(seen));
