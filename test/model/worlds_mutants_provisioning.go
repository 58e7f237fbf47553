package model

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// provisioningWorlds start with a claim without a volume.
func provisioningWorlds() []Config {
	claim := func(changes ...claimChange) creation { return claimOf("data", class, changes...) }
	node := claimNote(storage.AnnSelectedNode, "node-a")
	conflicting := newVolume(pvcName(), keep, claimedBy("other"))
	return []Config{
		smallWorld("provision, Delete", nil, []creation{newClass(remove), claim()}),
		smallWorld("provision, Retain", nil, []creation{newClass(keep), claim()}),
		smallWorld("provision, default class", nil, []creation{claimOf("data", "", withoutClass),
			defaultClass(newClass(remove))}),
		smallWorld("provision, no class", nil, []creation{claim()}).served(),
		smallWorld("provision, class without provisioner", nil,
			[]creation{changeClass(newClass(remove), "kubernetes.io/no-provisioner"), claim()}).served(),
		smallWorld("provision, class of another provisioner", nil,
			[]creation{changeClass(newClass(remove), "other.example.com"), claim()}).served(),
		smallWorld("provision, no node selected", nil, []creation{waiting(newClass(remove)), claim()}).served(),
		smallWorld("provision, no node selected, requested", nil, []creation{waiting(newClass(remove)), claim(namesDriver)}).
			served(),
		smallWorld("provision, node selected", nil, []creation{waiting(newClass(remove)), claim(node)}),
		smallWorld("provision, selected node is gone", nil, []creation{waiting(newClass(remove)),
			claim(claimNote(storage.AnnSelectedNode, "gone"))}).served(),
		smallWorld("provision, node selected later", nil, []creation{waiting(newClass(remove)), claim()},
			selectNode("data", "node-a")).served(),
		smallWorld("provision, another node is selected", nil, []creation{waiting(newClass(remove)),
			claim(node, namesDriver)}, selectNode("data", "node-b")).served().alone().with("an interruption", interrupted),
		smallWorld("deleted claim is not provisioned", nil, []creation{newClass(remove),
			claim(namesDriver, claimWith("example.com/backup"), deletedClaim)}),
		smallWorld("claim that names a volume is not provisioned", nil,
			[]creation{newClass(remove), claim(namesDriver, naming("disk"))}),
		smallWorld("bound claim, volume vanished", []string{"disk-of-" + pvcName()},
			[]creation{newClass(remove), claim(namesDriver, boundTo(pvcName()))}).givenUp(),
		smallWorld("bound claim, volume and disk vanished", nil, []creation{newClass(remove),
			claim(namesDriver, boundTo(pvcName()))}),
		smallWorld("lost claim, volume vanished", []string{"disk-of-" + pvcName()},
			[]creation{newClass(remove), claim(namesDriver, naming(pvcName()), lost)}).givenUp(),
		smallWorld("volume is recorded already", []string{"disk-of-" + pvcName()},
			[]creation{newClass(remove), newVolume(pvcName(), remove, byDriver, referTo("data"), volumeWith(finalizer.VolumeProtection, finalizer.External)), claim(namesDriver)}),
		smallWorld("name conflict", []string{"disk-of-" + pvcName()}, []creation{newClass(remove), conflicting, claim(namesDriver)}).givenUp().served(),
		smallWorld("name conflict ends", nil, []creation{newClass(remove), newVolume(pvcName(), keep, claimedBy("other"), onDisk("other")), claim(namesDriver)}, certainly(deleteVolume("pvc-"))),
		smallWorld("name conflict during the call", nil, []creation{newClass(remove), claim(namesDriver)}, volumeComes(newVolume(pvcName(), keep, claimedBy("other"), onDisk("other")))).served().with("an interruption", interrupted),
		smallWorld("class is created later", nil, []creation{claim()}, certainly(createClass(newClass(remove)))),
	}
}

// faultyWorlds are those of a claim without a volume in which something fails, or a user interferes.
func faultyWorlds() []Config {
	claim := func(changes ...claimChange) creation { return claimOf("data", class, changes...) }
	failing := func(name string, all ...codes.Code) Config {
		return smallWorld("provision, "+name, nil, []creation{newClass(remove), claim(namesDriver)}).
			with("a failed call", func(c *Config) {
				c.Errors, c.Codes = 1, all
			})
	}
	node := claimNote(storage.AnnSelectedNode, "node-a")
	return []Config{
		failing("Unavailable", codes.Unavailable), failing("Internal", codes.Internal),
		failing("AlreadyExists", codes.AlreadyExists).unresolved(), failing("NotFound", codes.NotFound),
		failing("ResourceExhausted", codes.ResourceExhausted), failing("InvalidArgument", codes.InvalidArgument),
		smallWorld("provision, refused twice", nil, []creation{newClass(remove), claim(namesDriver)}).
			with("two failed calls", func(c *Config) { c.Errors, c.Codes = 2, []codes.Code{codes.InvalidArgument} }),
		smallWorld("provision, node selected, ResourceExhausted", nil,
			[]creation{waiting(newClass(remove)), claim(node, namesDriver)}).served().
			with("a failed call", func(c *Config) { c.Errors, c.Codes = 1, []codes.Code{codes.ResourceExhausted} }),
		smallWorld("provision, the claim is deleted", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteClaim("data")),
		smallWorld("provision, the claim is deleted during a pass", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteClaim("data")).with("an interruption", interrupted),
		smallWorld("provision, the claim is deleted unseen", nil, []creation{newClass(remove),
			claim(namesDriver, claimWith())}, deleteClaim("data")).alone().with("a stalled watch", stalled),
		smallWorld("provision, the volume is deleted during a pass", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteVolume("pvc-")).with("an interruption", interrupted),
		smallWorld("provision, the volume is deleted unseen", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteVolume("pvc-")).with("a stalled watch", stalled),
		smallWorld("provision, gate off", nil, []creation{newClass(remove), claim(namesDriver)}).gateOff(),
		smallWorld("provision, a failed call", nil, []creation{newClass(remove), claim(namesDriver)}).fail(),
		smallWorld("provision, a lost answer", nil, []creation{newClass(remove), claim(namesDriver)}).
			with("a lost answer", func(c *Config) { c.Losses++ }),
		smallWorld("provision, the claim is deleted", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteClaim("data")).with("a delayed write of the journal", delaying("leases")),
		smallWorld("provision, the volume is deleted", nil, []creation{newClass(remove), claim(namesDriver)},
			deleteVolume("pvc-")).with("a delayed write of the volume", delaying("persistentvolumes")),
		smallWorld("provision, a crash", nil, []creation{newClass(remove), claim(namesDriver)}).crash(),
	}
}

// restart is a moment of a world at which both programs end, with one requested entry in the
// journal.
type restart struct {
	name string
	// claims, disks, volumes and kept are how many there are; bound: the claim is Bound.
	claims, disks, volumes, kept int
	bound                        bool
}

// is reports whether the state is such a moment.
func (r restart) is(s *check.Snapshot) bool {
	announced := r.kept > 0 || r.volumes > 0 || r.bound
	requested := func(e journal.Entry) bool { return e.State == journal.Requested && e.Announced == announced }
	bound := func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound }
	return slices.ContainsFunc(s.Entries, requested) && len(s.Claims) == r.claims && len(s.Disks) == r.disks &&
		len(s.Volumes) == r.volumes &&
		len(s.Kept) == r.kept && slices.ContainsFunc(s.Claims, bound) == r.bound
}

// restartWorlds start with a journal entry, or what comes after it. The programs begin anew, in
// the term after the entry was written, or later.
func (l *Lab) restartWorlds() []Config {
	from := smallWorld("provisioning", nil, []creation{newClass(remove), claimOf("data", class, namesDriver)},
		deleteClaim("data")).with("an interruption", interrupted)
	vanished := smallWorld("volume vanishes", nil, []creation{newClass(remove), claimOf("data", class, namesDriver)},
		certainly(stripFinalizers("pvc-")), certainly(deleteVolume("pvc-"))).givenUp()
	kept := smallWorld("volume kept", nil, []creation{newClass(keep), claimOf("data", class, namesDriver)},
		certainly(deleteVolume("pvc-")), certainly(deleteClaim("data")))
	all := []Config{
		forgottenClaim(),
		l.startAt(kept, restart{"requested, disk kept, claim gone", 0, 1, 0, 1, false}).with("a wrong answer", wrongAnswer),
		l.startAt(vanished, restart{"requested, bound, volume vanished", 1, 1, 0, 0, true}),
	}
	for _, moment := range []restart{
		{"requested, no disk", 1, 0, 0, 0, false},
		{"requested, disk", 1, 1, 0, 0, false},
		{"requested, no disk, claim gone", 0, 0, 0, 0, false},
		{"requested, disk, claim gone", 0, 1, 0, 0, false},
		{"requested, recorded", 1, 1, 1, 0, false},
		{"requested, bound", 1, 1, 1, 0, true},
		{"requested, recorded, claim gone", 0, 1, 1, 0, false},
	} {
		begun := l.startAt(from, moment)
		all = append(all, begun, begun.with("another leader between", func(c *Config) { c.Terms, c.Upstream = 3, true }))
		if moment.disks > 0 && moment.claims > 0 {
			all = append(all, begun.with("the claim is deleted",
				func(c *Config) { c.Users = []UserAction{deleteClaim("data")} }))
		}
		all = append(all, begun.with("a former leader", formerLeader))
	}
	return all
}

// startAt returns the world that begins at the first moment of the kind, with the programs not
// running yet.
func (l *Lab) startAt(c Config, moment restart) Config {
	w, err := newWorld(l, c)
	if err != nil {
		panic(err.Error())
	}
	p := packed{world: w, needed: map[int]bool{}}
	found, err := explore.Find(p, func(state string) bool { return moment.is(w.snapshot(p.unpack(state))) })
	if err != nil {
		panic(fmt.Sprintf("%s never comes to %s: %v", c.Name, moment.name, err))
	}
	return w.begun(p.unpack(found), "restart: "+moment.name)
}

// begun returns the world that begins with what the state has.
func (w *world) begun(s *State, name string) Config {
	c := w.config
	c.Name, c.Users, c.Interruptions, c.Restarted = name, nil, 0, true
	c.Objects, c.Disks, c.Kept = w.cluster(s).Objects(), w.handles(s.disks), w.handles(s.kept)
	if c.GivenUp { // its user takes care of the disk
		c.Kept, c.GivenUp = c.Disks, false
	}
	return c
}

// wholeWorlds are larger: they begin at the beginning, and users do what they want.
func wholeWorlds() []Config {
	return []Config{
		static(remove), static(keep),
	}
}

// Changes of a class.
func changeClass(c creation, provisioner string) creation {
	c.object.(*storagev1.StorageClass).Provisioner = cmp.Or(provisioner, process.DriverName)
	return c
}

func waiting(c creation) creation {
	c.object.(*storagev1.StorageClass).VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	return c
}

func defaultClass(c creation) creation {
	annotate(&c.object.(*storagev1.StorageClass).ObjectMeta, "storageclass.kubernetes.io/is-default-class", "true")
	return c
}
