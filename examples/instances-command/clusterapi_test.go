package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/client-go/util/jsonpath"

	. "github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
)

// management sets the variables of the script.
func management(t *testing.T) {
	t.Helper()
	t.Setenv("EXEUNT_MANAGEMENT_KUBECONFIG", "/etc/exeunt/management")
	t.Setenv("EXEUNT_CLUSTER", "prod")
	t.Setenv("EXEUNT_NAMESPACE", "clusters")
}

// capi is a Machine of Cluster API.
type capi struct{ name, kind, deleting, cluster, node, id string }

// object returns the Machine as the API server does.
func (m capi) object() map[string]any {
	metadata := map[string]any{"name": m.name, "uid": "uid-of-" + m.name,
		"labels": map[string]any{"cluster.x-k8s.io/cluster-name": m.cluster}}
	if m.deleting != "" {
		metadata["deletionTimestamp"] = m.deleting
	}
	machine := map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "metadata": metadata,
		"spec": map[string]any{"providerID": m.id, "infrastructureRef": map[string]any{"kind": m.kind}}}
	if m.node != "" {
		machine["status"] = map[string]any{"nodeRef": map[string]any{"name": m.node}}
	}
	return machine
}

// printed returns what kubectl prints of the Machines for the template of the script.
func printed(t *testing.T, machines ...capi) string {
	t.Helper()
	calls := stub(t, "kubectl", answer{words: "get machines.cluster.x-k8s.io", stderr: "no", code: 1})
	call(t, "cluster-api.sh", "get", machine, fails("no"))
	_, template, found := strings.Cut(strings.TrimSpace(calls()), "jsonpath=")
	if !found {
		t.Fatalf("the script has no template: %s", calls())
	}
	parsed := jsonpath.New("machines").AllowMissingKeys(true)
	if err := parsed.Parse(template); err != nil {
		t.Fatal(err)
	}
	items := []any{}
	for _, m := range machines {
		items = append(items, m.object())
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, map[string]any{"items": items}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The Machines of the tests. Each but the first has the providerID of the instance.
var (
	other    = capi{"m-0", "AWSMachine", "", "prod", "node-9", "aws:///eu-central-1a/i-0ab"}
	ours     = capi{"m-1", "AWSMachine", "", "prod", "node-0", machine.ProviderID}
	vsphere  = capi{"m-1", "VSphereMachine", "", "prod", "node-0", machine.ProviderID}
	deleting = capi{"m-1", "AWSMachine", "2026-11-29T00:00:00Z", "prod", "node-0", machine.ProviderID}
	foreign  = capi{"m-1", "AWSMachine", "", "other", "node-0", machine.ProviderID}
	copied   = capi{"m-1", "AWSMachine", "", "prod", "node-7", machine.ProviderID}
	unnamed  = capi{"m-1", "AWSMachine", "", "prod", "", machine.ProviderID}
)

// The answers about the Cluster.
var (
	active = answer{words: "get clusters"}
	paused = answer{words: "get clusters", stdout: "true"}
	absent = answer{words: "get clusters", stderr: `clusters.cluster.x-k8s.io "prod" not found`, code: 1}
)

// The writes of a call.
const patched, deleted = 1, 2

type capiCase struct {
	verb     string
	machines []capi
	cluster  answer
	want     want
	writes   int
}

var capiCases = map[string]capiCase{
	"running":         {"get", []capi{other, ours}, active, is(Running), 0},
	"not registered":  {"get", []capi{unnamed}, active, is(Running), 0},
	"deleting":        {"get", []capi{deleting, other}, active, is(Stopping), 0},
	"gone":            {"get", []capi{other}, active, is(Gone), 0},
	"moved":           {"get", nil, absent, fails("not found"), 0},
	"moving":          {"get", []capi{other}, paused, fails("moves to another"), 0},
	"foreign":         {"get", []capi{foreign}, active, is(Foreign), 0},
	"copied ID":       {"get", []capi{copied}, active, is(Foreign), 0},
	"stop":            {"stop", []capi{other, ours}, active, is(Stopping), patched + deleted},
	"stop again":      {"stop", []capi{deleting}, active, is(Stopping), patched},
	"stop of none":    {"stop", nil, active, is(Gone), 0},
	"stop of foreign": {"stop", []capi{foreign}, active, is(Foreign), 0},
	"stop of copied":  {"stop", []capi{copied}, active, is(Foreign), 0},
	"stop in paused":  {"stop", []capi{ours}, paused, fails("is paused"), 0},
	"stop on vSphere": {"stop", []capi{vsphere}, active, refuses("VSphereMachine is not known to keep disks"), 0},
	"delete":          {"delete", []capi{ours}, active, is(Stopping), patched + deleted},
	"delete foreign":  {"delete", []capi{foreign}, active, is(Foreign), 0},
	"delete vSphere":  {"delete", []capi{vsphere}, active, is(Stopping), patched + deleted},
	"delete paused":   {"delete", []capi{ours}, paused, fails("is paused"), 0},
	"unknown call":    {"start", []capi{ours}, active, fails("unknown call start"), 0},
}

func TestClusterAPIMachines(t *testing.T) {
	management(t)
	for name, tc := range capiCases {
		t.Run(name, func(t *testing.T) {
			text := printed(t, tc.machines...)
			calls := stub(t, "kubectl", answer{words: "get machines.cluster.x-k8s.io", stdout: text}, tc.cluster,
				answer{words: "patch machines.cluster.x-k8s.io m-1 --type merge"}, answer{words: "delete --raw"})
			call(t, "cluster-api.sh", tc.verb, machine, tc.want)
			writes := 0
			if strings.Contains(calls(), "patch ") {
				writes += patched
			}
			if strings.Contains(calls(), "delete ") {
				writes += deleted
			}
			if writes != tc.writes {
				t.Errorf("writes %d, want %d, in\n%s", writes, tc.writes, calls())
			}
		})
	}
}

// fine are the answers of kubectl for an active Cluster.
func fine(machines string) []answer {
	return []answer{{words: "get machines", stdout: machines}, active, {words: "patch "}, {words: "delete "}}
}

func TestClusterAPIWritesNameTheUID(t *testing.T) {
	management(t)
	for _, kind := range []string{"AWSMachine", "AzureMachine", "GCPMachine", "Metal3Machine"} {
		calls := stub(t, "kubectl", fine(printed(t, capi{"m-1", kind, "", "prod", "node-0", machine.ProviderID}))...)
		call(t, "cluster-api.sh", "stop", machine, is(Stopping))
		_, rest, _ := strings.Cut(calls(), "--patch ")
		var patch struct {
			Metadata struct {
				UID         string
				Annotations map[string]string
			}
		}
		if err := json.NewDecoder(strings.NewReader(rest)).Decode(&patch); err != nil {
			t.Fatalf("%v in\n%s", err, calls())
		}
		_, waits := patch.Metadata.Annotations["machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"]
		_, drains := patch.Metadata.Annotations["machine.cluster.x-k8s.io/exclude-node-draining"]
		if patch.Metadata.UID != "uid-of-m-1" || !waits || !drains {
			t.Errorf("the patch is %+v", patch)
		}
		const raw = "delete --raw /apis/cluster.x-k8s.io/v1beta2/namespaces/clusters/machines/m-1 -f -\n"
		_, rest, found := strings.Cut(rest, raw)
		var options struct{ Preconditions struct{ UID string } }
		if err := json.Unmarshal([]byte(rest), &options); !found || err != nil || options.Preconditions.UID != "uid-of-m-1" {
			t.Errorf("found %v, %v, options %+v in\n%s", found, err, options, calls())
		}
		if want := "--kubeconfig /etc/exeunt/management --namespace clusters"; strings.Count(calls(), want) != 4 {
			t.Errorf("not every call has %s:\n%s", want, calls())
		}
	}
}

func TestClusterAPIFailuresAreErrors(t *testing.T) {
	management(t)
	text := printed(t, ours)
	for _, failing := range []string{"get machines", "get clusters", "patch ", "delete "} {
		for message, throttled := range map[string]bool{"Error from server (Forbidden)": false,
			"Error from server (TooManyRequests)": true, "the server has received too many requests": true} {
			t.Run(failing+message, func(t *testing.T) {
				stub(t, "kubectl", append([]answer{{words: failing, stderr: message, code: 1}}, fine(text)...)...)
				call(t, "cluster-api.sh", "stop", machine, want{message: message, throttled: throttled})
			})
		}
	}
	call(t, "cluster-api.sh", "stop", Instance{Node: "node-0"}, is(Foreign))
}
