package forecast_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/exeunt-io/exeunt/pkg/forecast"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/pkg/termination/pod"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// newPod returns a Ready pod of a ReplicaSet with the label app=NAME's letters before the number.
func newPod(name string, change ...func(p *v1.Pod)) v1.Pod {
	p := v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels:          map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: ptr.To(true)}}},
		Spec: v1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](60)},
		Status: v1.PodStatus{Phase: v1.PodRunning, StartTime: &metav1.Time{Time: now.Add(-time.Hour)},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}},
	}
	for _, f := range change {
		f(&p)
	}
	return p
}

func grace(seconds int64) func(p *v1.Pod) {
	return func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

func annotated(value string) func(p *v1.Pod) {
	return func(p *v1.Pod) { p.Annotations = map[string]string{pod.DoNotDisruptAnnotation: value} }
}

func daemon(p *v1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }

func critical(p *v1.Pod) { p.Spec.Priority = ptr.To[int32](2_000_000_000) }

func tolerant(p *v1.Pod) {
	p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
}

func unready(p *v1.Pod) { p.Status.Conditions = nil }

func terminating(end time.Time, seconds int64) func(p *v1.Pod) {
	return func(p *v1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: end}, &seconds
	}
}

func newBudget(name string, allowed int32, change ...func(b *policyv1.PodDisruptionBudget)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status: policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: allowed, CurrentHealthy: 2 + allowed,
			DesiredHealthy: 2, ExpectedPods: 3},
	}
	for _, f := range change {
		f(&b)
	}
	return b
}

func world(period string, pods ...v1.Pod) *World {
	return &World{Now: now, Node: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, Pods: pods, Period: period}
}

func budgeted(w *World, budgets ...policyv1.PodDisruptionBudget) *World {
	w.Budgets = budgets
	return w
}

func (w want) of(t *testing.T, name string, world *World) {
	t.Helper()
	report, err := world.Of()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	last := report.Pods[len(report.Pods)-1]
	var reasons []string
	for _, b := range last.Blockers {
		reasons = append(reasons, b.Reason)
	}
	forced := ""
	if w.forced != none {
		forced = now.Add(time.Duration(w.forced) * time.Second).Format(time.RFC3339)
	}
	if last.First != w.first || last.Forced != forced || last.Misses.GraceSeconds != w.seconds ||
		!slices.Equal(last.Misses.Against, append([]string{}, w.against...)) || !slices.Equal(reasons, w.blockers) {
		t.Errorf("%s: first %v, L %v, misses %+v, blockers %v; want %+v", name, last.First, last.Forced, last.Misses, reasons, w)
	}
	if cut := w.seconds > 0 || len(w.against) > 0; cut != (report.CutShort > 0) {
		t.Errorf("%s: %d pods are cut short", name, report.CutShort)
	}
}

// want is what is wanted of the last pod of a world, by name. forced is the seconds until L.
type want struct {
	first    First
	forced   int
	seconds  int64
	against  []string
	blockers []string
}

const none = math.MinInt

const web, slow = "PodDisruptionBudget shop/web", "PodDisruptionBudget shop/slow"

func generation(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }

func always(b *policyv1.PodDisruptionBudget) {
	b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	b.Status.CurrentHealthy = 1
}

func few(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 1 }

// outlooks are the pods of the rows. The deadline of each row without another period is 900 s away, and P 5 s before.
var outlooks = map[string]struct {
	world *World
	want  want
}{
	"no budget":             {world("15m", newPod("a")), want{AtOnce, 835, 0, nil, nil}},
	"no deadline":           {world("Never", newPod("a")), want{AtOnce, none, 0, nil, nil}},
	"budget with room":      {budgeted(world("15m", newPod("a")), newBudget("web", 1)), want{AtOnce, 835, 0, nil, nil}},
	"#11 budget is full":    {budgeted(world("15m", newPod("a")), newBudget("web", 0)), want{AfterBudget, 835, 0, []string{web}, []string{"BudgetBlocks"}}},
	"full, no deadline":     {budgeted(world("Never", newPod("a")), newBudget("web", 0)), want{AfterBudget, none, 0, nil, []string{"BudgetBlocks"}}},
	"status is old":         {budgeted(world("15m", newPod("a")), newBudget("web", 1, generation)), want{AfterBudget, 835, 0, []string{web}, []string{"BudgetBlocks"}}},
	"another pod is first":  {budgeted(world("15m", newPod("a", grace(90)), newPod("b")), newBudget("web", 1)), want{AfterBudget, 835, 0, []string{web}, []string{"BudgetInUse"}}},
	"unready pod may go":    {budgeted(world("15m", newPod("a", unready)), newBudget("web", 0)), want{AtOnce, 835, 0, nil, nil}},
	"too few healthy":       {budgeted(world("15m", newPod("a", unready)), newBudget("web", 0, few)), want{AfterBudget, 835, 0, []string{web}, []string{"BudgetBlocks"}}},
	"unready always may":    {budgeted(world("15m", newPod("a", unready)), newBudget("web", 0, always)), want{AtOnce, 835, 0, nil, nil}},
	"pending pod may go":    {budgeted(world("15m", newPod("a", func(p *v1.Pod) { p.Status.Phase = v1.PodPending })), newBudget("web", 0)), want{AtOnce, 835, 0, nil, nil}},
	"#14 two budgets":       {budgeted(world("15m", newPod("a")), newBudget("web", 1), newBudget("slow", 1)), want{AtL, 835, 0, []string{web, slow}, []string{"EvictionRefused"}}},
	"#14 for ever":          {budgeted(world("Never", newPod("a")), newBudget("web", 1), newBudget("slow", 1)), want{Never, none, 0, nil, []string{"EvictionRefused"}}},
	"#13 do-not-disrupt":    {world("15m", newPod("a", annotated("true"))), want{AtL, 835, 0, []string{pod.DoNotDisruptAnnotation}, []string{"DoNotDisrupt"}}},
	"#13 for ever":          {world("Never", newPod("a", annotated("true"))), want{Never, none, 0, nil, []string{"DoNotDisrupt"}}},
	"#13 for some minutes":  {world("15m", newPod("a", annotated("1h5m"))), want{AtTime, 835, 0, nil, []string{"DoNotDisrupt"}}},
	"#13 until after L":     {world("15m", newPod("a", annotated("2h"))), want{AtL, 835, 0, []string{pod.DoNotDisruptAnnotation}, []string{"DoNotDisrupt"}}},
	"#13 is over":           {world("15m", newPod("a", annotated("1h"))), want{AtOnce, 835, 0, nil, nil}},
	"#13 is ignored":        {world("15m", newPod("a", annotated("yes"))), want{AtOnce, 835, 0, nil, []string{"DoNotDisrupt"}}},
	"#18 long grace":        {world("15m", newPod("a", grace(1000))), want{AtOnce, -105, 105, nil, nil}},
	"#18 and its budget":    {budgeted(world("15m", newPod("a", grace(1000))), newBudget("web", 0)), want{AtOnce, -105, 105, []string{web}, []string{"BudgetBlocks"}}},
	"#04 no time at all":    {world("0s", newPod("a")), want{AtOnce, -60, 59, nil, nil}},
	"#19 no grace":          {world("15m", newPod("a", grace(0))), want{AtOnce, 895, 0, nil, nil}},
	"#24 daemon":            {world("15m", newPod("a"), newPod("b", daemon, grace(600))), want{AfterOthers, 895, 0, nil, []string{"OrderKeeps"}}},
	"#24 daemon alone":      {world("15m", newPod("b", daemon)), want{AtOnce, 895, 0, nil, nil}},
	"#24 kept until P":      {world("15m", newPod("b", daemon, annotated("true"))), want{AtP, 895, 0, []string{pod.DoNotDisruptAnnotation}, []string{"DoNotDisrupt"}}},
	"#25 daemon returns":    {world("15m", newPod("a", daemon, tolerant)), want{Stays, none, 0, nil, []string{"WouldReturn"}}},
	"replacement may come":  {world("15m", newPod("a", tolerant)), want{AtOnce, 835, 0, nil, []string{"WouldReturn"}}},
	"#26 critical":          {world("15m", newPod("a"), newPod("b", critical)), want{AfterOrdinary, 835, 0, nil, []string{"OrderKeeps"}}},
	"#26 critical, from L":  {world("20s", newPod("a"), newPod("b", critical)), want{AtOnce, -45, 45, nil, nil}},
	"#26 critical alone":    {world("15m", newPod("b", critical)), want{AtOnce, 835, 0, nil, nil}},
	"#23 static":            {world("15m", newPod("a", func(p *v1.Pod) { p.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "x"} })), want{Stays, none, 0, nil, []string{"StaticPod"}}},
	"#23 finished":          {world("15m", newPod("a", func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })), want{Stays, none, 0, nil, []string{"ContainersFinished"}}},
	"foreign finalizer":     {world("15m", newPod("a", func(p *v1.Pod) { p.Finalizers = []string{"example.com/f"} })), want{AtOnce, 835, 0, nil, []string{"ForeignFinalizer"}}},
	"#20 ends in time":      {world("15m", newPod("a", terminating(now.Add(time.Minute), 60))), want{Ending, none, 0, nil, nil}},
	"#20 ends after P":      {world("15m", newPod("a", terminating(now.Add(time.Hour), 3600))), want{Ending, none, 3600 - 890 - 1, nil, []string{"TerminatingBeyond"}}},
	"#20 ends in year 1734": {world("15m", newPod("a", terminating(now.AddDate(-292, 0, 0), 9223372037))), want{Ending, none, 9223372037 - 890, nil, []string{"TerminatingBeyond"}}},
	"#20 DaemonSet ends":    {world("15m", newPod("a", daemon, terminating(now.Add(time.Hour), 3600))), want{Ending, none, 0, nil, []string{"TerminatingBeyond"}}},
}

func TestForecastOfPod(t *testing.T) {
	for name, tc := range outlooks {
		tc.want.of(t, name, tc.world)
	}
}

func TestNamespaceThatEndsDeletesPod(t *testing.T) {
	w := budgeted(world("15m", newPod("a", annotated("true"))), newBudget("web", 0))
	w.Ending = map[string]bool{"shop": true}
	want{WithNamespace, 835, 0, nil, []string{"NamespaceEnds"}}.of(t, "#16", w)
}

// #30: the pod with the earliest L takes the room of its budget.
func TestRoomOfBudgetGoesToEarliestL(t *testing.T) {
	report, err := budgeted(world("15m", newPod("a"), newPod("b", grace(600)), newPod("c")), newBudget("web", 1)).Of()
	if err != nil || report.CutShort != 2 {
		t.Fatalf("%d pods are cut short, %v", report.CutShort, err)
	}
	for i, first := range []First{AfterBudget, AtOnce, AfterBudget} {
		if report.Pods[i].First != first {
			t.Errorf("pod %s goes %s, want %s", report.Pods[i].Name, report.Pods[i].First, first)
		}
	}
}

func labeled(value string) *World {
	w := world("")
	w.Node.Labels = map[string]string{termination.Label: value}
	return w
}

func claimed(period string) *World {
	w := labeled("15m")
	w.Claim = &Claim{Name: "n1", Ours: true, Period: period}
	return w
}

func TestDeadlineOfForecast(t *testing.T) {
	deleted := labeled("15m")
	deleted.Node.DeletionTimestamp = &metav1.Time{Time: now.Add(-10 * time.Minute)}
	tightened := labeled("15m")
	tightened.Node.DeletionTimestamp = &metav1.Time{Time: now.Add(-10 * time.Minute)}
	tightened.Node.Annotations = map[string]string{termination.TimestampAnnotation: now.Add(time.Minute).Format(time.RFC3339)}
	tightened.Node.Spec.Taints = []v1.Taint{{Key: termination.DisruptedTaint, Effect: v1.TaintEffectNoSchedule,
		TimeAdded: &metav1.Time{Time: now.Add(-10 * time.Minute)}}}
	byClaim := claimed("30m")
	byClaim.Claim.Requested = now.Add(-20 * time.Minute)
	for name, tc := range map[string]struct {
		world *World
		left  time.Duration // 0 for no deadline
		from  string
	}{
		"flag":                       {world("30m"), 30 * time.Minute, "--grace-period"},
		"nothing":                    {world(""), 0, ""},
		"label":                      {labeled("15m"), 15 * time.Minute, "label exeunt.io/termination-grace-period"},
		"#03 Never":                  {labeled("Never"), 0, "label exeunt.io/termination-grace-period"},
		"#05 label is no period":     {labeled("1d"), 0, ""},
		"claim replaces label":       {claimed("30m"), 30 * time.Minute, "NodeClaim n1"},
		"claim without a period":     {claimed(""), 0, "NodeClaim n1, which names no terminationGracePeriod"},
		"#05 claim of 9999999h":      {claimed("9999999h"), 0, "NodeClaim n1"},
		"deleted 10 minutes ago":     {deleted, 5 * time.Minute, "label exeunt.io/termination-grace-period"},
		"#02 an earlier annotation":  {tightened, time.Minute, "label exeunt.io/termination-grace-period"},
		"claim deleted 20 m earlier": {byClaim, 10 * time.Minute, "NodeClaim n1"},
	} {
		report, err := tc.world.Of()
		want := ""
		if tc.left > 0 {
			want = now.Add(tc.left).Format(time.RFC3339)
		}
		if err != nil || report.Deadline != want || report.PeriodFrom != tc.from {
			t.Errorf("%s: deadline %q from %q, %v, want %q", name, report.Deadline, report.PeriodFrom, err, want)
		}
	}
}

func TestWrongPeriodIsRefused(t *testing.T) {
	deleted := world("15m")
	deleted.Node.DeletionTimestamp = &metav1.Time{Time: now}
	for want, w := range map[string]*World{
		`--grace-period: "1d" is no period: write whole numbers with s, m or h, such as 30m or 1h30m, or Never`: world("1d"),
		"node n1 is being deleted already: its period is fixed, leave out --grace-period":                       deleted,
	} {
		if _, err := w.Of(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func attachment(name, volume string) storagev1.VolumeAttachment {
	a := storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}
	if volume == "" {
		a.Spec.Source.InlineVolumeSpec = &v1.PersistentVolumeSpec{}
	} else {
		a.Spec.Source.PersistentVolumeName = &volume
	}
	return a
}

// mounting returns a change that mounts the claim of the volume.
func (w *storedWorld) mounting(volume string) func(p *v1.Pod) {
	w.Claims["shop/"+volume] = &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{VolumeName: volume}}
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: volume}}})
	}
}

// storedWorld is a World with claims.
type storedWorld struct{ *World }

func TestDisksOfNode(t *testing.T) {
	w := &storedWorld{world("15m")}
	w.Claims, w.Volumes = map[string]*v1.PersistentVolumeClaim{}, map[string]*v1.PersistentVolume{}
	w.Pods = []v1.Pod{newPod("a", w.mounting("used")), newPod("b", daemon, tolerant, w.mounting("stays"), w.mounting("both")),
		newPod("c", w.mounting("both")), newPod("d", daemon)}
	for _, volume := range []string{"used", "stays", "both", "none", ""} {
		w.Attachments = append(w.Attachments, attachment("of-"+volume, volume))
	}
	report, err := w.Of()
	if err != nil {
		t.Fatal(err)
	}
	awaited := map[string]bool{}
	for _, d := range report.Disks {
		awaited[d.Volume] = d.Awaited
	}
	for volume, want := range map[string]bool{"used": true, "stays": false, "both": true, "none": true, "": false} {
		if got, listed := awaited[volume]; got != want || !listed {
			t.Errorf("#41: disk %q is awaited: %v, listed %v, want %v", volume, got, listed, want)
		}
	}
	if want := now.Add(870 * time.Second).Format(time.RFC3339); report.GraceEnds != want {
		t.Errorf("P with attached volumes is %s, want %s", report.GraceEnds, want)
	}
	if last := report.Pods[3]; last.First != AfterOthers {
		t.Errorf("#24: the DaemonSet's pod goes %s", last.First)
	}
}

func TestLossesOfPod(t *testing.T) {
	w := &storedWorld{world("15m")}
	w.Claims = map[string]*v1.PersistentVolumeClaim{}
	w.Volumes = map[string]*v1.PersistentVolume{
		"local": {ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			Local: &v1.LocalVolumeSource{}}}},
		"host": {ObjectMeta: metav1.ObjectMeta{Name: "host"}, Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			HostPath: &v1.HostPathVolumeSource{}}}},
		"bound": {ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: v1.PersistentVolumeSpec{NodeAffinity: &v1.VolumeNodeAffinity{
			Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
				{Key: v1.LabelHostname}}}}}}}},
		"cloud": {ObjectMeta: metav1.ObjectMeta{Name: "cloud"}},
	}
	empty := func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}
	w.Frozen = map[string]bool{"torn": true}
	frozen := func(p *v1.Pod) { p.Namespace = "torn" }
	bare := func(p *v1.Pod) { p.OwnerReferences = nil }
	for name, tc := range map[string]struct {
		pod  v1.Pod
		want []string
	}{
		"nothing":            {newPod("a", w.mounting("cloud")), nil},
		"no owner":           {newPod("a", bare), []string{"noOwner"}},
		"emptyDir":           {newPod("a", empty), []string{"emptyDir"}},
		"all":                {newPod("a", bare, empty, w.mounting("local")), []string{"noOwner", "emptyDir", "localVolume"}},
		"hostPath":           {newPod("a", w.mounting("host")), []string{"localVolume"}},
		"volume of one node": {newPod("a", w.mounting("bound")), []string{"localVolume"}},
		"DaemonSet":          {newPod("a", daemon, empty), nil},
		"frozen":             {newPod("a", w.mounting("cloud"), frozen), []string{"frozen"}},
		"frozen, no claim":   {newPod("a", empty, frozen), []string{"emptyDir"}},
		"frozen, no owner":   {newPod("a", bare, w.mounting("cloud"), frozen), []string{"noOwner"}},
	} {
		w.Pods = []v1.Pod{tc.pod}
		report, err := w.Of()
		var kinds []string
		for _, loss := range report.Pods[0].Losses {
			kinds = append(kinds, loss.Kind)
		}
		if err != nil || !slices.Equal(kinds, tc.want) {
			t.Errorf("%s: the losses are %v, %v, want %v", name, kinds, err, tc.want)
		}
	}
}

// A kubelet that was away sends SIGTERM once it is back: until a minute after that grace period the pod is no stuck one.
func TestPodOfReturnedKubeletIsAwaited(t *testing.T) {
	for back, want := range map[time.Duration]First{time.Minute: Ending, 3 * time.Minute: Stays} {
		w := world("15m", newPod("a", terminating(now.Add(-2*time.Minute), 60)))
		w.Node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-back))}}
		report, err := w.Of()
		if err != nil || report.Pods[0].First != want {
			t.Errorf("back since %s: %v, %v", back, report.Pods, err)
		}
	}
}

func TestForecastSaysWhenClaimEndsItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		claim Claim
		want  string
	}{
		"drifted":      {Claim{Ours: true, Drifted: true, Period: "15m"}, "NodeClaim c has drifted: node-terminator deletes the node"},
		"without T":    {Claim{Ours: true, Drifted: true}, "node-terminator deletes the node, once no pod of it is kept"},
		"expired":      {Claim{Ours: true, Expires: now, Period: "15m"}, "NodeClaim c has expired"},
		"not yet":      {Claim{Ours: true, Expires: now.Add(time.Hour), Period: "15m"}, "NodeClaim c expires at 2026-11-29T13:00:00Z"},
		"never":        {Claim{Ours: true, Period: "15m"}, ""},
		"Karpenter's":  {Claim{Drifted: true, Period: "15m"}, ""},
		"being ended ": {Claim{Ours: true, Drifted: true, Period: "15m", Requested: now}, ""},
	} {
		w := world("")
		w.Claim = &tc.claim
		w.Claim.Name = "c"
		report, err := w.Of()
		found := slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, cmp.Or(tc.want, "NodeClaim c ")) })
		if err != nil || found != (tc.want != "") {
			t.Errorf("%s: %q, %v", name, report.Notes, err)
		}
	}
}
