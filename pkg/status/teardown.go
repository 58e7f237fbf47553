package status

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
	"github.com/exeunt-io/exeunt/pkg/why/signal"
)

// Teardown is how far the teardown of the cluster is.
type Teardown struct {
	// Alive is "present", "absent" or "unseen". Deleted: its deletion was requested.
	Alive   string `json:"alive"`
	Deleted bool   `json:"deleted"`
	// Phase, Reason, Message and Remaining are those of the status. Permission says what the spec permits.
	Phase      string `json:"phase"`
	Reason     string `json:"reason"`
	Message    string `json:"message"`
	Remaining  int64  `json:"remaining"`
	Permission string `json:"permission"`
	// Participants are the finalizers of operators that have not finished.
	Participants []string `json:"participants"`
	// Freeze is "inForce", "incomplete", "absent" or "unseen".
	Freeze string `json:"freeze"`
	// Armed is "present" if alive-controller has the right to tear down, "absent" or "unseen".
	Armed string `json:"armed"`
	// Runner names who carries the teardown out, or would; "" if nobody was seen.
	Runner string `json:"runner"`
	// Findings are sentences about what is not as it should be. They say nothing about volumes.
	Findings []string `json:"findings"`
	// Unseen names what could not be read.
	Unseen []string `json:"unseen"`
}

func (t *Teardown) find(format string, values ...any) {
	t.Findings = append(t.Findings, fmt.Sprintf(format, values...))
}

// tearing is one look at the teardown.
type tearing struct {
	*Teardown
	// reader keeps to itself what could not be read: that says nothing about volumes.
	reader   *cluster.Reader
	commands cluster.Commands
	observed *signal.Observation // nil without an Alive
	freeze   signal.Freeze
}

// addTeardown adds the teardown of the cluster, if there is an Alive or a freeze.
func (s *survey) addTeardown(ctx context.Context) {
	t := &tearing{Teardown: &Teardown{Participants: []string{}, Findings: []string{}, Unseen: []string{}}, reader: s.Reader.Apart(),
		commands: s.Commands}
	served, complete := t.reader.ServedIn(alive.Group)
	t.freeze = signal.ReadFreeze(ctx, t.reader)
	t.Freeze = freezeState(t.freeze)
	if len(served) == 0 && complete && !t.freeze.Left() {
		return // what a user may not read of policies is no sign of a teardown
	}
	t.readAlive(ctx)
	if t.Alive == cluster.Absent.String() && !t.freeze.Left() {
		return
	}
	t.readRight(ctx)
	t.findRunner(ctx)
	t.findFreeze()
	t.findGuards(ctx)
	t.findReadiness()
	t.Unseen = append(t.Unseen, t.reader.Incomplete()...)
	s.report.Teardown = t.Teardown
}

func freezeState(freeze signal.Freeze) string {
	switch {
	case freeze.InForce():
		return "inForce"
	case freeze.Policy == cluster.Unseen || freeze.Binding == cluster.Unseen:
		return cluster.Unseen.String()
	case freeze.Left():
		return "incomplete"
	}
	return cluster.Absent.String()
}

func (t *tearing) readAlive(ctx context.Context) {
	content, presence, _ := t.reader.Live(ctx, cluster.Ref{Resource: alive.Resource, Kind: alive.Kind, Name: alive.Name})
	if t.Alive = presence.String(); content == nil {
		return
	}
	for _, p := range alive.ParticipantsOf(content) {
		t.Participants = append(t.Participants, p.Finalizer)
	}
	observed, err := signal.Observe(ctx, t.reader, content)
	if err != nil {
		t.find("Alive is not understood, and permits nothing: %v", err)
		return
	}
	t.observed = observed
	status := observed.Object.Status
	t.Deleted, t.Permission, t.Remaining = observed.State.Deleted, observed.Permission(), status.RemainingCount
	t.Phase, t.Reason, t.Message = string(status.Phase), status.Reason, status.Message
}

// readRight finds out whether alive-controller has the right to tear down.
func (t *tearing) readRight(ctx context.Context) {
	_, presence, _ := t.reader.Live(ctx, cluster.Ref{Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
		Kind: "ClusterRoleBinding", Name: deploy.ArmedBinding})
	if t.Armed = presence.String(); presence != cluster.Present || t.observed == nil || t.Deleted {
		return
	}
	if reason, _ := signal.Decide(t.observed.State); reason == blocker.ClusterProtected {
		t.find("alive-controller has the right to tear the cluster down, ClusterRoleBinding %s, and no teardown is permitted: %s. "+
			"This takes the right back:\n%s", deploy.ArmedBinding, t.Permission,
			t.commands.Kubectl("", "delete", "clusterrolebinding", deploy.ArmedBinding))
	}
}

// findRunner finds out who carries the teardown out, and why it is stopped.
func (t *tearing) findRunner(ctx context.Context) {
	family, _ := families.Find(alive.Finalizer, alive.Kind, alive.Group)
	finding := holder.Finder{Reader: t.reader, Commands: t.commands}.Look(ctx, family.Controller, "")
	reason, _ := blocker.JudgeController(finding.State)
	if reason == blocker.ControllerActs || finding.State.Workload == blocker.WorkloadReady {
		t.Runner = finding.Holder
	}
	if !t.Deleted {
		return
	}
	why := t.commands.Exeunt("", "why", "alive/"+alive.Name)
	switch stop := t.observed.Stop(); {
	case stop != "":
		t.find("the teardown is stopped, and nothing new is deleted: %s\n%s", stop, why)
	case reason != blocker.ControllerActs && finding.State.Lease != blocker.LeaseUnseen:
		t.find("nobody was seen to carry the teardown out: the Lease %s/%s is not held\n%s", teardown.Namespace, teardown.LeaseName, why)
	}
}

// findFreeze finds a freeze that is left behind, or that lacks a part.
func (t *tearing) findFreeze() {
	started := t.Deleted && t.observed.Object.IsStarted()
	switch {
	case started && !t.freeze.InForce() && t.Freeze != cluster.Unseen.String():
		t.find("the teardown has started, and the freeze %s is %s: new volumes and load balancers are not refused", teardown.FreezeName,
			t.Freeze)
	case !t.Deleted && t.Alive != cluster.Unseen.String() && t.freeze.InForce():
		t.find("%s. No teardown is under way. If the cluster stays, this removes the freeze and Alive:\n%s", t.freeze.Text(),
			t.commands.Exeunt("", "teardown", "remove"))
	}
}

// findGuards finds guards of Alive that are missing.
func (t *tearing) findGuards(ctx context.Context) {
	if t.Alive != cluster.Present.String() {
		return
	}
	for _, name := range []string{deploy.AlivePolicy, deploy.DefinitionPolicy} {
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			if _, presence, _ := t.reader.Live(ctx, signal.PolicyRef(kind, name)); presence == cluster.Absent {
				t.find("%s %s does not exist: it guards Alive, whose deletion tears the cluster down. Apply deploy/alive, or install the chart "+
					"with alive.enabled", kind, name)
			}
		}
	}
}

// findReadiness finds out why a deletion of Alive would not begin the teardown that is permitted.
func (t *tearing) findReadiness() {
	if t.observed == nil || t.Phase != string(alive.Armed) {
		return
	}
	ready := meta.FindStatusCondition(t.observed.Object.Status.Conditions, alive.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionFalse && !t.Deleted {
		t.find("the teardown is permitted, and a deletion of Alive would not begin it: %s, %s", ready.Reason, ready.Message)
	}
}

// describe says how far the teardown is.
func (t *Teardown) describe() string {
	var parts []string
	switch {
	case t.Alive != cluster.Present.String():
		parts = append(parts, "Alive is "+t.Alive)
	case t.Phase != "":
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s, %s: %s", t.Phase, t.Reason, t.Message), ": "))
	default:
		parts = append(parts, "no phase yet")
	}
	if t.Permission != "" {
		parts = append(parts, t.Permission)
	}
	if t.Remaining > 0 {
		parts = append(parts, fmt.Sprintf("%d to delete are left", t.Remaining))
	}
	if len(t.Participants) > 0 {
		parts = append(parts, "participants "+strings.Join(t.Participants, ", "))
	}
	parts = append(parts, "freeze "+map[string]string{"inForce": "in force"}[t.Freeze]+strings.TrimPrefix(t.Freeze, "inForce"))
	switch {
	case t.Runner != "" && t.Deleted:
		parts = append(parts, "carried out by "+t.Runner)
	case t.Runner != "":
		parts = append(parts, t.Runner+" runs")
	}
	if t.Armed == cluster.Present.String() {
		parts = append(parts, "alive-controller may delete")
	}
	return strings.Join(parts, "; ")
}
