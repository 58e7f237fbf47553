package api

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// maxNamed is how many webhooks, and how many policies, are named.
const maxNamed = 3

// NameDeniers adds to the blockers of controllers that have to remove a finalizer of the object which
// webhooks and policies see that write, and may refuse it: without a probe nothing tells. found is not changed.
func NameDeniers(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured,
	found []blocker.Blocker) []blocker.Blocker {
	all := slices.Clone(found)
	waits := func(b blocker.Blocker) bool { return waitsForRemoval(b, object) }
	t, known := targetOf(e, object)
	if !known || !slices.ContainsFunc(all, waits) {
		return all
	}
	facts, who := t.deniers(ctx, e)
	for i := range all {
		if len(facts) == 0 || !waits(all[i]) {
			continue
		}
		all[i].Evidence = slices.Concat(all[i].Evidence, facts)
		if !e.Probe() {
			all[i].Next = strings.TrimPrefix(all[i].Next+"\n", "\n") +
				cluster.Steps(who+" may refuse the removal of the finalizer: a dry run tells",
					e.Commands().Exeunt(object.GetNamespace(), "why", t.word()+"/"+object.GetName(), "--probe"))
		}
	}
	return all
}

// deniers returns which webhooks and policies may refuse the write, as evidence and in a word, "" for none.
func (t target) deniers(ctx context.Context, e chain.Explorer) (facts []blocker.Evidence, who string) {
	if hooks := t.seeing(ctx, e); len(hooks) > 0 {
		facts = append(facts, evidence(blocker.FromField,
			"webhooks see the write that removes the finalizer, and may refuse it: %s", shortened(hooks, maxNamed)))
		who = "a webhook"
	}
	policies, unserved := t.policies(ctx, e)
	if len(policies) > 0 {
		facts = append(facts, evidence(blocker.FromField,
			"policies see the write that removes the finalizer, and may refuse or undo it: %s", shortened(policies, maxNamed)))
		who = strings.TrimPrefix(who+" or a policy", " or ")
	}
	if len(facts) > 0 && len(unserved) > 0 {
		facts = append(facts, evidence(blocker.FromList, "the API server has no kind %s",
			strings.Join(unserved, " and no kind ")))
	}
	return facts, who
}

// waitsForRemoval reports whether the blocker is that of a controller which has to write to the object.
func waitsForRemoval(b blocker.Blocker, object *unstructured.Unstructured) bool {
	if b.Finalizer == "" || b.Object.UID != string(object.GetUID()) || len(b.Blockers) > 0 {
		return false
	}
	return slices.Contains([]blocker.Reason{blocker.ControllerActs, blocker.ControllerUnseen, blocker.UnknownFinalizer,
		blocker.DriverDeletes}, b.Reason)
}

// seeing returns the names of the webhooks that see the write, with their configurations.
func (t target) seeing(ctx context.Context, e chain.Explorer) []string {
	write := t.write(ctx, e)
	var names []string
	for _, h := range t.webhooks(ctx, e) {
		if h.Sees(write) {
			names = append(names, h.String())
		}
	}
	return names
}

// String names the webhook and its configuration.
func (h hook) String() string { return h.Name + " of " + h.configuration.String() }

// denier completes the blocker of a write that the webhook of the name denies.
func (t target) denier(ctx context.Context, e chain.Explorer, found *blocker.Blocker, name string) {
	write := t.write(ctx, e)
	words, commands := "webhook "+name, []string{}
	for _, h := range t.webhooks(ctx, e) {
		if h.Name == name && h.Sees(write) {
			words = "webhook " + h.String()
			commands = append(commands, h.get(e))
		}
	}
	if len(commands) == 0 {
		commands = append(commands, webhookCommand(e))
	}
	found.Reason, found.Holder, found.Verdict = blocker.AdmissionDenies, words, blocker.Unknown
	found.Evidence = append(found.Evidence, evidence(blocker.FromProbe,
		"the webhook may decide differently for the controller that removes the finalizer"))
	found.Next = cluster.Steps("change the object or the rules of the "+words+", as its message says", commands...)
}
