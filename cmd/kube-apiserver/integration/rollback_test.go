package integration

import (
	"maps"
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var withPrefix = clientv3.WithPrefix()

// many is how many objects are in their grace period while API servers are replaced.
const many = 50

// #53: a rolling rollback, from ours to a stock API server that ran beside it. The informer of the controller resumes
// its watch there and gets no event, for the resourceVersions are the same: each PUT of its copies is refused, until
// kubectl exeunt rollback has changed each object once.
func TestRollbackUnderControllerThatPuts(t *testing.T) {
	k := newKind(t, ours(t), "puts.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	at := map[string]kind{"ours": k, "stock": stock}
	c := newController(k, k.s)
	granted := k.grantMany(many, 300, finalizer)
	c.awaitCache(many, true)
	session(t, "50 objects deleted with --grace-period=300 at ours", "a-0", at)
	c.moveTo(stock.s)
	stock.deadlinesStay(granted)
	for range 2 { // a retry does not help
		if codes := c.remove(finalizer); !maps.Equal(codes, map[int]int{http.StatusUnprocessableEntity: many}) {
			t.Fatalf("the controller at stock gets %v, want %d times 422", codes, many)
		}
	}
	session(t, "rollback to stock: each PUT of the controller gets 422, the field is immutable", "a-0", at)
	if changed := stock.rollback(); changed != many {
		t.Errorf("rollback changed %d objects, want %d", changed, many)
	}
	session(t, "kubectl exeunt rollback: the annotation is spelled anew, an event for each informer", "a-0", at)
	stock.deadlinesStay(granted)
	c.removeAll(finalizer)
	session(t, "the controller reconciles again and removes its finalizer by PUT", "a-0", at)
	stock.noneLeft()
}

// #36, #53: upgrade, downgrade, upgrade with objects in their grace period. After each upgrade the informer has copies
// with deletionGracePeriodSeconds 0, which ours accepts.
func TestUpgradeDowngradeUpgradeInGracePeriod(t *testing.T) {
	k := newKind(t, ours(t), "cycle.example.com")
	stock := k.at(mustServe(t, shared.stock)).await()
	c := newController(k, stock.s)
	granted := k.grantMany(many, 300, "example.com/0", "example.com/1", "example.com/2")
	c.awaitCache(many, false)
	accepted := map[int]int{http.StatusOK: many}

	c.moveTo(k.s) // upgrade
	if codes := c.remove("example.com/0"); !maps.Equal(codes, accepted) {
		t.Errorf("after the upgrade: %v", codes)
	}
	k.deadlinesStay(granted)
	c.awaitCache(many, true)

	c.moveTo(stock.s) // downgrade
	if codes := c.remove("example.com/1"); !maps.Equal(codes, map[int]int{http.StatusUnprocessableEntity: many}) {
		t.Errorf("after the downgrade: %v", codes)
	}
	stock.rollback()
	c.removeAll("example.com/1")
	stock.deadlinesStay(granted)
	k.deadlinesStay(granted)
	c.awaitCache(many, false)

	c.moveTo(k.s) // upgrade again
	if codes := c.remove("example.com/2"); !maps.Equal(codes, accepted) {
		t.Errorf("after the second upgrade: %v", codes)
	}
	k.noneLeft()
	c.awaitCache(0, false)
}
