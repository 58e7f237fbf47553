package nodeterminator

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/lease"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/machine"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// step is evidence, and what is expected of it.
type step struct {
	evidence evidence
	want     node.Proof
	complete bool
	// read gives the proof, as a live read of the Lease does.
	read bool
}

// silent is a Lease that was unchanged for this time after so many renewals.
func silent(seconds, renewals int) lease.View {
	return lease.View{Synced: true, Unchanged: time.Duration(seconds) * time.Second, Duration: 40 * time.Second,
		Renewals: renewals}
}

var (
	running = machine.View{State: instances.Running, Seen: true}
	once    = machine.View{State: instances.Off, Seen: true, Off: 1}
	twice   = machine.View{State: instances.Off, Seen: true, Off: 2}
)

// proofs are what is known of a machine, step by step.
var proofs = map[string][]step{
	"nobody says that the machine is off": {{evidence: evidence{lease: silent(100, 0), machine: running}}},
	"one answer":                          {{evidence: evidence{lease: silent(100, 0), machine: once}, want: node.Begun}},
	"two answers, the Lease is young": {
		{evidence: evidence{lease: silent(12, 0), machine: twice}, want: node.Begun}},
	"two answers, the Lease was not read": {
		{evidence: evidence{lease: lease.View{Duration: 40 * time.Second}, machine: twice}, want: node.Begun}},
	"two answers, a silent kubelet": {
		{evidence: evidence{lease: silent(14, 0), machine: twice}, want: node.Begun, complete: true, read: true},
		{evidence: evidence{lease: silent(15, 0), machine: twice}, want: node.Given}},
	"#53 renewed after the proof": {
		{evidence: evidence{lease: silent(14, 3), machine: twice}, want: node.Begun, complete: true, read: true},
		{evidence: evidence{lease: silent(15, 3), machine: twice, ours: true}, want: node.Given},
		{evidence: evidence{lease: silent(0, 4), machine: twice, ours: true}, want: node.Revoked},
		{evidence: evidence{lease: silent(1, 4), machine: machine.View{}, ours: true}, want: node.Revoked},
		{evidence: evidence{lease: silent(2, 4), machine: machine.View{}}}},
	"#53 the machine is on again": {
		{evidence: evidence{lease: silent(14, 0), machine: twice}, want: node.Begun, complete: true, read: true},
		{evidence: evidence{lease: silent(15, 0), machine: running, ours: true}, want: node.Revoked},
		{evidence: evidence{lease: silent(16, 0), machine: running, ours: true}, want: node.Revoked},
		{evidence: evidence{lease: silent(17, 0), machine: running}}},
	"#53 our taint of an earlier process, the Lease is renewed": {
		{evidence: evidence{lease: silent(3, 0), machine: twice, ours: true}, want: node.Begun},
		{evidence: evidence{lease: silent(0, 1), machine: twice, ours: true}, want: node.Revoked}},
	"a provider that lies": {
		{evidence: evidence{lease: silent(5, 0), machine: once}, want: node.Begun},
		{evidence: evidence{lease: silent(0, 1), machine: twice}, want: node.NoProof},
		{evidence: evidence{lease: silent(9, 1), machine: twice}, want: node.NoProof},
		{evidence: evidence{lease: silent(0, 2), machine: twice}, want: node.NoProof}},
	"#57 the answers are about a shared machine": {
		{evidence: evidence{lease: silent(100, 0), machine: twice, shared: true}, want: node.NoProof}},
	"#56 an administrator's taint": {
		{evidence: evidence{lease: silent(2, 0), others: true}, want: node.Begun},
		{evidence: evidence{lease: silent(14, 0), others: true}, want: node.Begun, complete: true, read: true},
		{evidence: evidence{lease: silent(15, 0), others: true}, want: node.Given}},
	"an administrator's taint, the provider says that the machine runs": {
		{evidence: evidence{lease: silent(100, 0), others: true, machine: running}},
		{evidence: evidence{lease: silent(101, 0), others: true}, want: node.Begun, complete: true}},
	"#56 the taint before the machine was off": {
		{evidence: evidence{lease: silent(2, 0), others: true}, want: node.Begun},
		{evidence: evidence{lease: silent(0, 1), others: true}, want: node.NoProof},
		{evidence: evidence{lease: silent(9, 1), others: true}, want: node.NoProof},
		{evidence: evidence{lease: silent(14, 1), others: true}, want: node.NoProof},
		{evidence: evidence{lease: silent(15, 1)}, want: node.NoProof},
		{evidence: evidence{lease: silent(16, 1), others: true}, want: node.Begun, complete: true}},
}

func TestProof(t *testing.T) {
	for name, steps := range proofs {
		t.Run(name, func(t *testing.T) {
			var p proof
			for i, s := range steps {
				got := p.judge(s.evidence)
				if got.proof != s.want || got.complete != s.complete {
					t.Fatalf("step %d: %+v, want %v, complete %v", i, got, s.want, s.complete)
				}
				p.given = p.given || s.read
			}
		})
	}
}
