package garbage

import "slices"

// The slots of all clusters: two owners, and dependents of two other kinds.
const (
	ownerA = iota
	ownerB
	secretD
	serviceD
	serviceG
)

var slotNames = []string{"owner-a", "owner-b", "secret-d", "service-d", "service-g"}

// config returns a cluster with these objects, by slot.
func config(name string, begin func(w *world, s *State), faults Faults, users ...Action) *Config {
	c := &Config{
		Name: name,
		Kinds: []*Kind{kindOf("", "ConfigMap", "configmaps", 100), kindOf("", "Secret", "secrets", 10),
			kindOf("", "Service", "services", 1000)},
		Begin: begin, Users: users, Faults: faults,
	}
	for slot, kind := range []int{0, 0, 1, 2, 2} {
		c.Slots = append(c.Slots, Slot{Kind: kind, Name: slotNames[slot]})
	}
	return c
}

// owned fills a cluster with two owners, and dependents of the first.
func owned(dependents ...int) func(w *world, s *State) {
	return func(w *world, s *State) {
		w.create(s, ownerA, Object{})
		w.create(s, ownerB, Object{})
		for _, d := range dependents {
			w.create(s, d, Object{Refs: []Ref{w.reference(s, ownerA, true)}})
		}
	}
}

// with changes a cluster before it is explored.
func (c *Config) with(change func(c *Config)) *Config {
	change(c)
	return c
}

// twoKinds leaves out the third kind.
func twoKinds(c *Config) { c.Slots = c.Slots[:serviceD] }

// owns adds the first slots as owners of the last one.
func owns(w *world, s *State, slot int, blocks bool, owners ...int) {
	changed := Object{}
	if s.objects[slot] != nil {
		changed = *s.objects[slot]
	}
	for _, owner := range owners {
		changed.Refs = append(changed.Refs, w.reference(s, owner, blocks))
	}
	if s.objects[slot] != nil {
		w.update(s, &changed)
		return
	}
	w.create(s, slot, changed)
}

// Quick are the clusters that are explored in seconds.
func Quick() []*Config {
	return withoutIdleKinds(slices.Concat(foregroundConfigs(), policyConfigs(), cycleConfigs(), readConfigs(),
		faultConfigs(), restoreConfigs()))
}

// withoutIdleKinds leaves out the kinds without slots.
func withoutIdleKinds(all []*Config) []*Config {
	for _, c := range all {
		c.Kinds = c.Kinds[:slices.Max(c.kindNumbers())+1]
	}
	return all
}

func (c *Config) kindNumbers() []int {
	numbers := make([]int, len(c.Slots))
	for i, slot := range c.Slots {
		numbers[i] = slot.Kind
	}
	return numbers
}

func foregroundConfigs() []*Config {
	return []*Config{
		config("foreground, a dependent is created", owned(secretD), Faults{}, deletes(ownerA, foreground),
			creates(serviceD, true, ownerA)),
		config("foreground, a secret is created", owned(serviceD), Faults{}, deletes(ownerA, foreground),
			creates(secretD, true, ownerA)),
		config("foreground, a dependent of a dependent is created", owned(secretD), Faults{},
			creates(serviceG, true, secretD), deletes(ownerA, foreground)),
		config("foreground, the dependent gets another owner", owned(secretD), Faults{Interruptions: 1},
			deletes(ownerA, foreground), swaps(secretD, true, ownerB)),
		config("foreground, the dependent is created again", owned(secretD), Faults{Interruptions: 1},
			deletes(ownerA, foreground), deletes(secretD, background), creates(secretD, true, ownerB)).with(twoKinds),
		config("foreground, the second owner during the barrier of the first", owned(), Faults{},
			deletes(ownerA, foreground), creates(secretD, true, ownerB), deletes(ownerB, foreground)).with(twoKinds),
		config("two owners, one is deleted in the foreground", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
		}, Faults{Interruptions: 1}, deletes(ownerA, foreground), deletes(ownerB, foreground)),
		config("two owners, one is deleted in the background", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
		}, Faults{Interruptions: 1}, deletes(ownerA, background), deletes(ownerB, foreground)),
		config("two owners, the watch of one is late", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
		}, Faults{Seconds: 1}, deletes(ownerA, foreground), deletes(ownerB, background)).with(twoKinds),
		config("two owners, one orphans and one is in the foreground", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
		}, Faults{Interruptions: 1}, deletes(ownerA, orphan), deletes(ownerB, foreground)).with(twoKinds),
		config("foreground, references that do not block", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, false, ownerA)
		}, Faults{}, deletes(ownerA, foreground), swaps(secretD, true, ownerA)),
	}
}

func policyConfigs() []*Config {
	return []*Config{
		config("orphan, a dependent is created", owned(secretD), Faults{}, deletes(ownerA, orphan),
			creates(serviceD, true, ownerA)),
		config("foreground, then orphan, a second passes", owned(secretD), Faults{Interruptions: 1, Seconds: 1},
			deletes(ownerA, foreground), deletes(ownerA, orphan)).with(twoKinds),
		config("foreground, then background, a second passes", owned(secretD), Faults{Interruptions: 1, Seconds: 1},
			deletes(ownerA, foreground), deletes(ownerA, background)),
		config("a user removes the finalizer", owned(secretD), Faults{Interruptions: 1, Seconds: 1},
			deletes(ownerA, foreground), stripsOurs(ownerA),
			strips(ownerA, "all finalizers", func(o *Object) { o.Foreground, o.Orphan, o.Foreign = false, false, false })).
			with(func(c *Config) {
				begin := c.Begin
				c.Begin = func(w *world, s *State) {
					begin(w, s)
					kept := *s.objects[ownerA]
					kept.Foreign = true
					w.update(s, &kept)
				}
			}),
		config("background, the owner is created again", owned(secretD), Faults{Interruptions: 1},
			deletes(ownerA, background), creates(ownerA, true), swaps(secretD, true, ownerA)),
	}
}

func cycleConfigs() []*Config {
	cycle := func(w *world, s *State) {
		owned()(w, s)
		owns(w, s, ownerA, true, ownerB)
		owns(w, s, ownerB, true, ownerA)
	}
	return []*Config{
		config("a cycle of two", cycle, Faults{}, deletes(ownerA, foreground), deletes(ownerB, foreground)),
		config("a cycle of one", func(w *world, s *State) {
			owned(secretD)(w, s)
			owns(w, s, ownerA, true, ownerA)
		}, Faults{}, deletes(ownerA, foreground)),
		config("a cycle with a blocker outside", func(w *world, s *State) {
			cycle(w, s)
			w.create(s, secretD, Object{Foreign: true, Refs: []Ref{w.reference(s, ownerB, true)}})
		}, Faults{}, deletes(ownerA, foreground), deletes(ownerB, foreground), lifts(secretD)),
		config("an owner is deleted after its dependent", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, ownerB, true, ownerA)
			w.create(s, secretD, Object{Refs: []Ref{w.reference(s, ownerB, true)}})
		}, Faults{}, deletes(ownerB, foreground), deletes(ownerA, foreground)),
	}
}

func readConfigs() []*Config {
	return []*Config{
		config("the watch shows the dependent before its owner", func(*world, *State) {},
			Faults{Relists: 1, StaleStarts: 1, Paths: 1},
			creates(ownerA, true), creates(secretD, true, ownerA), deletes(ownerA, background)),
		config("a list replaces the watch", owned(secretD), Faults{Relists: 1}, deletes(ownerA, foreground),
			creates(serviceD, true, ownerA)),
		config("versions of one counter", owned(serviceD, serviceG), Faults{}, deletes(ownerA, foreground)).
			with(func(c *Config) { c.OneCounter = true }),
		config("two objects of a kind, counters of different height", owned(serviceD), Faults{},
			creates(serviceG, true, ownerA), deletes(ownerA, foreground), touches(ownerB)).with(func(c *Config) {
			c.Kinds[0].First, c.Kinds[2].First = 5000, 10
		}),
		config("versions are no integers", owned(serviceD, serviceG), Faults{}, deletes(ownerA, foreground)).
			with(func(c *Config) { c.Kinds[2].Opaque = true }),
		config("wrong coordinates", func(w *world, s *State) {
			owned(secretD)(w, s)
			right, wrong := w.reference(s, ownerA, true), w.reference(s, ownerA, true)
			wrong.Name = slotNames[ownerB]
			w.create(s, serviceD, Object{Refs: []Ref{wrong}})
			w.create(s, serviceG, Object{Refs: []Ref{wrong, right}})
		}, Faults{}, deletes(ownerA, foreground)),
		config("another namespace", func(w *world, s *State) {
			owned(secretD)(w, s)
			w.create(s, serviceD, Object{Refs: []Ref{w.reference(s, ownerA, true)}})
		}, Faults{}, deletes(ownerA, background)).with(func(c *Config) { c.Slots[serviceD].Namespace = "other" }),
		config("an aggregated kind", owned(secretD), Faults{Interruptions: 1}, deletes(ownerA, foreground), touches(secretD)).
			with(twoKinds).with(func(c *Config) {
			c.Kinds[1] = kindOf("ext.example.com", "Secret", "secrets", 10)
		}),
	}
}

func faultConfigs() []*Config {
	return []*Config{
		config("a crash, and a late write", owned(secretD), Faults{Crashes: 1, Late: 1}, deletes(ownerA, foreground),
			swaps(secretD, true, ownerB)),
		config("a crash while orphaning, and a late write", owned(secretD), Faults{Crashes: 1, Late: 1},
			deletes(ownerA, orphan)),
		config("lost answers", owned(secretD), Faults{Lost: 2}, deletes(ownerA, foreground)),
		config("a failed call, and a path that is not served", owned(secretD), Faults{Failed: 1, Paths: 1},
			deletes(ownerA, foreground)),
		config("a webhook denies a write", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
			w.create(s, serviceD, Object{Refs: []Ref{w.reference(s, secretD, true)}})
		}, Faults{Denied: 1, Interruptions: 1}, deletes(ownerA, background)),
		config("a webhook denies writes, foreground", owned(secretD), Faults{Denied: 2}, deletes(ownerA, foreground),
			touches(secretD)),
		config("a webhook denies a write, orphan", owned(secretD), Faults{Denied: 1}, deletes(ownerA, orphan),
			touches(ownerA)),
		config("two paths that are not served", owned(secretD), Faults{Paths: 2}, deletes(ownerA, background),
			touches(secretD)),
		config("a kind cannot be listed", owned(secretD), Faults{Unlisted: 1}, deletes(ownerA, foreground)),
		config("a kind cannot be listed while orphaning", owned(secretD), Faults{Unlisted: 1}, deletes(ownerA, orphan)),
		config("a late answer", owned(secretD), Faults{Delayed: 1, Interruptions: 1}, deletes(ownerA, foreground),
			swaps(secretD, true, ownerB)).with(twoKinds),
		config("a late list, the dependent ends", func(w *world, s *State) {
			owned(secretD)(w, s)
			kept := *s.objects[secretD]
			kept.Foreign = true
			w.update(s, &kept)
		}, Faults{Delayed: 1, Interruptions: 1}, deletes(ownerA, foreground), deletes(secretD, background),
			strips(secretD, "the foreign finalizer", func(o *Object) { o.Foreign = false })).with(twoKinds).
			with(func(c *Config) { c.OneCounter = true }),
		config("upstream's collector beside", owned(secretD), Faults{Stock: 1, Interruptions: 1}, deletes(ownerA, foreground),
			swaps(secretD, true, ownerB)).with(twoKinds),
	}
}

// restoreConfigs are clusters whose etcd is restored, with and without leader election, and one whose API server is away.
func restoreConfigs() []*Config {
	elected := func(c *Config) { c.Elected = true }
	return []*Config{
		config("raised versions, the owner is back", owned(secretD), Faults{}, deletes(ownerA, background), restores(true)).
			with(twoKinds),
		config("raised versions, the dependent has its former owner", owned(secretD), Faults{}, swaps(secretD, true, ownerB),
			restores(true), deletes(ownerA, orphan)).with(twoKinds),
		config("raised versions, foreground", owned(secretD), Faults{}, deletes(ownerA, foreground), restores(true),
			touches(secretD)).with(twoKinds),
		config("raised versions, the backup is younger than the deletion", owned(secretD), Faults{}, deletes(ownerA, orphan),
			backsUp(), restores(true)).with(twoKinds),
		config("elected, the backup is younger than the deletion", owned(secretD), Faults{}, deletes(ownerA, orphan),
			backsUp(), restores(true)).with(twoKinds).with(elected),
		config("elected, the same versions", owned(secretD), Faults{}, swaps(secretD, true, ownerB), restores(false),
			deletes(ownerA, orphan), touches(secretD)).with(twoKinds).with(elected),
		config("the API server goes away", owned(), Faults{Away: 1}, creates(secretD, true, ownerA),
			deletes(ownerA, foreground)).with(twoKinds),
	}
}

// deepStates bounds the states of a large cluster.
const deepStates = 49_999

// Deep are the clusters that take minutes. Those that are larger are explored up to a number of states.
func Deep() []*Config {
	all := []*Config{
		config("foreground, the dependent changes and is created again, three kinds", owned(secretD),
			Faults{Interruptions: 1},
			deletes(ownerA, foreground), touches(secretD), deletes(secretD, background), creates(secretD, true, ownerB)),
		config("foreground, then orphan, a second passes, three kinds", owned(secretD), Faults{Interruptions: 1, Seconds: 1},
			deletes(ownerA, foreground), deletes(ownerA, orphan)),
		config("foreground, orphan and background, two seconds pass", owned(secretD), Faults{Interruptions: 1, Seconds: 2},
			deletes(ownerA, foreground), deletes(ownerA, orphan), deletes(ownerA, background)).with(twoKinds),
		config("two dependents of two kinds, and two owners", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, secretD, true, ownerA, ownerB)
			owns(w, s, serviceD, true, ownerA)
		}, Faults{}, deletes(ownerA, foreground), deletes(ownerB, foreground)),
		config("a late answer, a dependent is created", owned(secretD), Faults{Delayed: 1}, deletes(ownerA, foreground),
			creates(serviceD, true, ownerA)),
		config("upstream's collector beside, a dependent is created", owned(secretD), Faults{Stock: 2},
			deletes(ownerA, foreground), creates(serviceD, true, ownerA)),
		config("a cycle, and users who change it", func(w *world, s *State) {
			owned()(w, s)
			owns(w, s, ownerA, true, ownerB)
			owns(w, s, ownerB, true, ownerA)
		}, Faults{}, deletes(ownerA, foreground), deletes(ownerB, foreground), swaps(ownerB, true, ownerB),
			stripsOurs(ownerA)).with(func(c *Config) { c.Slots = c.Slots[:secretD] }),
		config("a crash, a late write, and another owner of the same name", owned(secretD), Faults{Crashes: 1, Late: 1},
			deletes(ownerA, background), creates(ownerA, true), swaps(secretD, true, ownerA), deletes(secretD, foreground)).
			with(twoKinds),
		config("orphan, a crash, and a dependent is created", owned(secretD), Faults{Crashes: 1, Late: 1},
			deletes(ownerA, orphan), creates(serviceD, true, ownerA)),
		config("a kind cannot be listed, a dependent is created", owned(secretD), Faults{Unlisted: 1},
			deletes(ownerA, foreground), creates(serviceD, true, ownerA)),
	}
	for _, c := range all {
		c.States = deepStates
	}
	return withoutIdleKinds(all)
}
