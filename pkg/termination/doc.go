// Package termination names what a node is asked to do by its label and its claim, and how a termination is written down:
// annotations, taints and the report. Packages pod and node below it decide.
//
// A Node with the label exeunt.io/termination-grace-period is served: it drains when it or its claim is deleted, under
// the budgets of its pods, and ends at its deadline. The label is the consent of the administrator: a NodeClaim alone
// is not, because Karpenter's chart gives the right to write claims to the role admin.
package termination
